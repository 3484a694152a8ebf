# The numbers of R's kernlab that tests/test_kernlab.py compares with.
#
#     Rscript tests/kernlab/make_numbers.R > tests/kernlab/numbers.json
#
# Made with R 4.2.2 and kernlab 0.9-32 (Debian's r-base-core and r-cran-kernlab). Data are Fisher's
# iris, which R and scikit-learn both bring along, and points that both sides compute.

suppressMessages(library(kernlab))
options(digits = 15)

numbers <- function(x) paste0("[", paste(format(c(x), digits = 15, trim = TRUE), collapse = ", "), "]")
parts <- list()
keep <- function(name, value) parts[[name]] <<- numbers(value)

X <- as.matrix(iris[, 1:4])
rows <- c(1, 51, 101, 150)

# kernel values between rows 1, 51, 101 and 150
some <- X[rows, ]
keep("rbfdot", kernelMatrix(rbfdot(sigma = 0.2), some))
keep("laplacedot", kernelMatrix(laplacedot(sigma = 0.2), some))
keep("polydot", kernelMatrix(polydot(degree = 3, scale = 0.5, offset = 2), some))
keep("tanhdot", kernelMatrix(tanhdot(scale = 0.01, offset = 0.1), some))
keep("vanilladot", kernelMatrix(vanilladot(), some))
keep("anovadot", kernelMatrix(anovadot(sigma = 0.2, degree = 2), some))

# kpca: eigenvalues, and scores of four training rows
pca <- kpca(X, kernel = "rbfdot", kpar = list(sigma = 0.2), features = 3)
keep("kpca_eig", eig(pca))
keep("kpca_rotated", t(rotated(pca)[rows, ]))

# ksvm: two species, decision values of every tenth row
two <- 51:150
species <- droplevels(iris$Species[two])
svm <- ksvm(X[two, ], species, type = "C-svc", kernel = "rbfdot", kpar = list(sigma = 0.2),
            C = 2, scaled = FALSE, tol = 1e-6)
keep("ksvm_decision", predict(svm, X[two, ][seq(1, 100, 10), ], type = "decision"))
scaled <- ksvm(X[two, ], species, type = "C-svc", kernel = "rbfdot", kpar = list(sigma = 0.2),
               C = 2, tol = 1e-6)
keep("ksvm_scaled_decision", predict(scaled, X[two, ][seq(1, 100, 10), ], type = "decision"))

# gausspr: petal width from the other columns
process <- gausspr(X[, 1:3], X[, 4], kernel = "rbfdot", kpar = list(sigma = 0.2), var = 0.1,
                   scaled = FALSE, variance.model = TRUE)
new <- X[rows, 1:3] + 0.25
keep("gausspr_predict", predict(process, new))
keep("gausspr_sdeviation", predict(process, new, type = "sdeviation"))

# kcca: sepals against petals
correlations <- kcca(X[, 1:2], X[, 3:4], kernel = "rbfdot", kpar = list(sigma = 0.2), gamma = 0.1,
                     ncomps = 4)
keep("kcca_kcor", correlations@kcor)

# specc: two rings of 60 points
angle <- 2 * pi * (0:59) / 60
rings <- rbind(cbind(cos(angle), sin(angle)), 3 * cbind(cos(angle), sin(angle)))
set.seed(0)
keep("specc", as.integer(specc(rings, centers = 2, kernel = "rbfdot", kpar = list(sigma = 2))))

# stringdot
words <- list("banana", "bandana", "cabana")
for (type in c("spectrum", "boundrange", "constant")) {
  keep(paste0("stringdot_", type), kernelMatrix(stringdot(type = type, length = 3, normalized = FALSE), words))
}
keep("stringdot_exponential",
     kernelMatrix(stringdot(type = "exponential", lambda = 1.5, normalized = FALSE), words))
keep("stringdot_normalized", kernelMatrix(stringdot(type = "spectrum", length = 3), words))

cat("{\n", paste(sprintf("  \"%s\": %s", names(parts), parts), collapse = ",\n"), "\n}\n", sep = "")
