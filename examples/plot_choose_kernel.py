"""
Choosing a kernel, and when the data cannot decide
==================================================

Breast-cancer measurements in 30 columns. Which kernel tells benign from malignant? Every kernel
gets the same folds, and the verdict says which differences are more than noise. Here none is: these
rows cannot tell four very different kernels apart. Then the simplest is the right choice.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from mercer import RBF, Cosine, Linear, OnColumns, compare_kernels

data = load_breast_cancer()
X = StandardScaler().fit_transform(data.data)[:300]
y = data.target_names[data.target[:300]]

# The columns come as means, standard errors and worst values of ten measurements.
means, worst = slice(0, 10), slice(20, 30)
kernels = {
    "linear": Linear(),
    "RBF": RBF("scale"),
    "two groups": OnColumns(RBF("scale"), means) + OnColumns(RBF("scale"), worst),
    "angles": Cosine(),
}
comparison = compare_kernels(X, y, kernels, cv=3, embeddings=["kernel PCA", "discriminant"])
print(comparison.headline, *comparison.reasons, sep="\n - ")

# %%
# One column per kernel, best first. Rows in strong colours were left out when the picture was
# fitted. The bottom row shows how many directions hold 90 % of the variance.

comparison.plot()
plt.show()

# %%
# The same for a file of your own: ``mercer compare data.csv --target diagnosis`` in a shell prints
# this table and writes a page with the pictures.

columns = ["kernel", "model", "score", "within_noise_of_best", "effective_dimension"]
print(comparison.table[columns].round(3).to_string(na_rep=""))
