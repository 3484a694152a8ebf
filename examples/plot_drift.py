"""
Has the data drifted?
=====================

Two batches of the same measurements. In the second, one column is shifted a little, another has
spread out, and three are as before. The test says whether the batches differ. The witness function
shows where: it is positive where the first batch has more rows, and negative where the second has
more.
"""

# %%
# The batches
# -----------

import numpy as np

from mercer import two_sample_test

rng = np.random.default_rng(0)
names = ["pressure", "temperature", "flow", "voltage", "load"]
old = rng.normal(size=(800, 5))
new = rng.normal(size=(600, 5))
new[:, 1] += 0.4
new[:, 3] *= 1.6

# %%
# The test
# --------
# The p-value is exact for any number of independent rows. ``columns`` says which columns matter:
# how much of the difference is lost when a column is shuffled between the samples, as shares of all
# these losses.

import pandas as pd

result = two_sample_test(
    pd.DataFrame(old, columns=names), pd.DataFrame(new, columns=names), random_state=0
)
print(result)

# %%
# The picture shows the statistic and its values for shuffled samples, the share of each column, and
# both samples (X is the old batch, Y the new one) along the column that matters most, with the mean
# of the witness function.

import matplotlib.pyplot as plt

fig, axes = plt.subplots(3, 1, figsize=(7, 10))
result.plot(axes)
plt.show()

# %%
# The rows of the old batch that are most unlike the new one, and the other way round:

of_old, of_new = result.rows(3)
print(of_old.round(2), of_new.round(2), sep="\n")
