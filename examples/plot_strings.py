"""
Words as points: a map of number words
======================================

Nothing in a kernel asks for vectors. Here the objects are the number words of eight languages, and
two words are similar where they share pieces of up to three letters. The map turns words into
coordinates; what is written alike comes to lie together, and language families appear.
"""

from collections import Counter

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
# Count the pieces of a word, beginning and end marked, and take the inner product of the counts:
# an inner product by construction, so a valid kernel. The library cannot know that of a Python
# function, so it checks.


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
# With lengths normalised (:class:`~mercer.Normalized`), kernel PCA draws the words. Colours are the
# numbers that they mean: the kernel knows nothing of meaning, and still finds threes and sixes.

number = np.tile(np.arange(1, 11), len(words))
K = Normalized(kernel)(everything)
scores = KernelPCA(2, "precomputed").fit_transform(K)
fig, ax = plt.subplots(figsize=(8.5, 5))
colours = plt.cm.tab10(number - 1)
for (x, y), word, colour in zip(scores, everything, colours):
    ax.text(x, y, word, color=colour, ha="center", va="center", fontsize=8)
ax.set(xlim=(scores[:, 0].min() - 0.08, scores[:, 0].max() + 0.08))
ax.set(ylim=(scores[:, 1].min() - 0.05, scores[:, 1].max() + 0.05), xticks=[], yticks=[])
ax.set_title("number words of eight languages, coloured by number")
plt.show()

# %%
# Languages
# ---------
# A language is the concatenation of its ten words' coordinates. Distances between these are
# distances between languages, and a tree of them is the family tree.

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
