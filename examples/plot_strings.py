"""
Words as points: a map of number words
======================================

A kernel does not need vectors. Here the objects are the number words of eight languages, and two
words are similar if they share pieces of up to three letters. The map turns words into coordinates.
Words that are written alike lie together, and language families appear.
"""

from collections import Counter
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np

from mercer import FromFunction, KernelMap, KernelPCA, Normalized, check_mercer

words = {
    "English": "one two three four five six seven eight nine ten",
    "Dutch": "een twee drie vier vijf zes zeven acht negen tien",
    "German": "eins zwei drei vier fuenf sechs sieben acht neun zehn",
    "Danish": "en to tre fire fem seks syv otte ni ti",
    "Italian": "uno due tre quattro cinque sei sette otto nove dieci",
    "Spanish": "uno dos tres cuatro cinco seis siete ocho nueve diez",
    "Portuguese": "um dois tres quatro cinco seis sete oito nove dez",
    "Finnish": "yksi kaksi kolme nelja viisi kuusi seitseman kahdeksan yhdeksan kymmenen",
}

# %%
# A kernel on strings
# -------------------
# Count the pieces of a word, with its beginning and end marked, and take the inner product of the
# counts. This is a valid kernel, because it is an inner product. The library cannot know that of a
# Python function, so it checks it on the data.


def pieces(word):
    word = f"<{word}>"
    return Counter(word[i : i + n] for n in (1, 2, 3) for i in range(len(word) - n + 1))


def shared_pieces(a, b):
    counts, others = pieces(a), pieces(b)
    return sum(count * others[piece] for piece, count in counts.items())


kernel = FromFunction(shared_pieces)
everything = [w for line in words.values() for w in line.split()]
print(check_mercer(kernel, everything))

# %%
# Words
# -----
# With lengths normalised (:class:`~mercer.Normalized`), the kernel matrix is a table of cosines.
# Words are sorted by the number that they mean. Bright blocks on the diagonal show that words for
# the same number are similar, most of all the words for three and six.


def spread_out(points, width, height, rounds=200):
    """Move labels of this size apart until none covers another."""
    points = points.copy()
    for _ in range(rounds):
        for i, j in combinations(range(len(points)), 2):
            gap = points[i] - points[j]
            if abs(gap[0]) < width and abs(gap[1]) < height:
                push = (height - abs(gap[1])) / 2 * (1 if gap[1] >= 0 else -1)
                points[i, 1] += push
                points[j, 1] -= push
    return points


number = np.tile(np.arange(1, 11), len(words))
K = Normalized(kernel)(everything)
order = np.argsort(number, kind="stable")
fig, ax = plt.subplots(figsize=(7, 6))
drawn = ax.imshow(K[np.ix_(order, order)], cmap="cividis", vmin=0, vmax=1)
middle = np.arange(10) * len(words) + (len(words) - 1) / 2
ax.set(xticks=middle, yticks=middle, title="similarity of 80 words, sorted by number")
ax.set(xticklabels=range(1, 11), yticklabels=words["English"].split())
for border in np.arange(1, 10) * len(words) - 0.5:
    ax.axhline(border, color="white", lw=0.5)
    ax.axvline(border, color="white", lw=0.5)
fig.colorbar(drawn, label="cosine in feature space", ticks=[0, 0.5, 1], shrink=0.8)
plt.show()

# %%
# Kernel PCA draws some of these words as a map: words that are written alike lie together.

some = ["two", "three", "six", "eight"]
columns = [words["English"].split().index(word) for word in some]
chosen = np.flatnonzero(np.isin(number - 1, columns))
_, first = np.unique([everything[i] for i in chosen], return_index=True)  # each word once
chosen = chosen[np.sort(first)]
scores = KernelPCA(2, "precomputed").fit_transform(K[np.ix_(chosen, chosen)])
colours = dict(zip(columns, ("C0", "C1", "C2", "C3")))
fig, ax = plt.subplots(figsize=(7, 6), layout="constrained")
for (x, y), i in zip(spread_out(scores, 0.15, 0.05), chosen):
    ax.text(x, y, everything[i], color=colours[number[i] - 1], ha="center", va="center")
low, high = scores.min(axis=0) - 0.15, scores.max(axis=0) + 0.15
ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[], aspect="equal")
ax.set_title("words for two, three, six and eight")
plt.show()

# %%
# Languages
# ---------
# For each language, join the coordinates of its ten words into one vector. Distances between these
# vectors are distances between languages, and hierarchical clustering draws their family tree.

from scipy.cluster.hierarchy import dendrogram, linkage

Phi = KernelMap("precomputed").fit_transform(K)
languages = Phi.reshape(len(words), -1)
fig, ax = plt.subplots(figsize=(6.5, 2.8))
dendrogram(
    linkage(languages, "average"),
    labels=list(words),
    orientation="right",
    ax=ax,
    color_threshold=0,
    above_threshold_color="#0072B2",
)
ax.set(xlabel="distance", title="languages, from their numbers")
plt.show()
