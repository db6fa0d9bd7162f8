// SPDX-License-Identifier: Apache-2.0
#include "rcnEvaluation.h"

#include "rcnTinyCase.h"

namespace
{

/// The evaluation of one tiny case, by one task.
struct Judged
{
  explicit Judged(const rcn::EvaluationOptions& options, const rcn::Volume& map = TinyProbability())
    : Judge(this->Case.Work.Context(), this->Case.Work.RaterNames(), { { 0, options } })
  {
    this->Counts = this->Judge.Add(NamedCase("one"), 0, this->Case.Work.Votes(), { { map, "one.nrrd" } });
  }
  const rcn::Evaluation& Get() const { return *this->Judge.Evaluations().front(); }
  double Figure(rcn_figure figure) const { return this->Get().Report().Figures[figure]; }

  TinyCase Case;
  rcn::Judging Judge;
  bool Counts = false;
};

/// By hand: every voxel has a bin of its own, so that the gap of a bin is |p - share of raters|.
void KnownAnswers()
{
  const rcn::EvaluationReport report = Judged(TinyOptions()).Get().Report();
  CHECK(report.Cases == 1 && report.Voxels == 4 && report.Pairs == 8 && report.Patients == 1);
  CHECK_NEAR(report.Figures[RCN_MR_ECE], (0.1 + 0.1 + 0.2 + 0.1) / 4, 1e-7);
  CHECK_NEAR(report.Figures[RCN_BRIER], (2 * 0.01 + 0.16 + 0.36 + 2 * 0.04 + 2 * 0.01) / 8, 1e-7);
  CHECK_NEAR(report.Figures[RCN_SIGNED], (-0.1 + 0.1 + 0.2 + 0.1) / 4, 1e-7);
  CHECK_NEAR(report.Figures[RCN_MCE], 0.2, 1e-7);
  CHECK(report.Figures[RCN_DICE] == 1 && report.Auc.reference == 1);
  // Of the 15 pairs of a mark (0.9, 0.9, 0.6) and no mark (0.6, 0.2, 0.2, 0.1, 0.1), one has equal probabilities.
  CHECK_NEAR(report.Auc.pairs, 14.5 / 15, 1e-12);
  CHECK(report.Bins[9].count == 2 && report.Bins[9].frequency == 1 && report.Bins[6].frequency == 0.5);
  CHECK(report.RaterBins.size() == 2 && report.RaterBins[0][6].frequency == 1 && report.RaterBins[1][6].frequency == 0);
  CHECK(report.Interval[RCN_MR_ECE].units == 0 && rcn::NoIntervalInWords(report) == "one case: no interval");
}

void RegionsDecide()
{
  CHECK_NEAR(Judged(TinyOptions(RCN_REGION_DISPUTED)).Figure(RCN_MR_ECE), 0.1, 1e-7);
  CHECK(Judged(TinyOptions(RCN_REGION_DISPUTED)).Get().Report().Voxels == 1);
  CHECK_NEAR(Judged(TinyOptions(RCN_REGION_BOX)).Figure(RCN_MR_ECE), 0.1, 1e-7);
  CHECK(Judged(TinyOptions(RCN_REGION_BOX)).Get().Report().Voxels == 2);
  // Outside the region a prediction may hold anything; inside it may not.
  const float nan = std::nanf("");
  CHECK_NEAR(Judged(TinyOptions(RCN_REGION_BOX), TinyMap({ 0.9f, 0.6f, nan, 7 })).Figure(RCN_MR_ECE), 0.1, 1e-7);
  CHECK_THROWS(Judged(TinyOptions(), TinyMap({ 0.9f, 0.6f, nan, 7 })), RCN_EDATA, "one.nrrd");
}

void ReadoutsOfLevels()
{
  const auto mean = [](rcn_readout readout, int atLeast) {
    rcn::EvaluationOptions options = TinyOptions();
    options.Calib.readout = readout;
    options.Calib.at_least = atLeast;
    const rcn::EvaluationReport report = Judged(options, TinyLevels()).Get().Report();
    return report.Figures[RCN_SIGNED] + 3.0 / 8; // the mean probability: three of eight votes are marks
  };
  CHECK_NEAR(mean(RCN_READOUT_EXPECTED, 0), (0.9 + 0.6 + 0.2 + 0.1) / 4, 1e-6);
  CHECK_NEAR(mean(RCN_READOUT_MAJORITY, 0), (0.95 + 0.8 + 0.3 + 0.15) / 4, 1e-6);
  CHECK_NEAR(mean(RCN_READOUT_AT_LEAST, 2), (0.85 + 0.4 + 0.1 + 0.05) / 4, 1e-6);
  CHECK_NEAR(mean(RCN_READOUT_MORE_THAN_HALF, 0), (0.85 + 0.4 + 0.1 + 0.05) / 4, 1e-6);
  CHECK_THROWS(
    Judged(TinyOptions(), TinyMap({ 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f }, 2)), RCN_EDATA, "2 raters need");
}

/// A tie of two raters is foreground, or background if asked for.
void Ties()
{
  rcn::EvaluationOptions options = TinyOptions();
  CHECK(Judged(options).Figure(RCN_DICE) == 1);
  options.TieBackground = true;
  CHECK_NEAR(Judged(options).Figure(RCN_DICE), 2.0 / 3, 1e-12);
  options.Reference = "A";
  CHECK(Judged(options).Figure(RCN_DICE) == 1);
  options.Reference = "B";
  CHECK_NEAR(Judged(options).Figure(RCN_DICE), 2.0 / 3, 1e-12);
  options.Reference = "C";
  CHECK_THROWS(Judged{ options }, RCN_EINVALID, "'C'");
}

/// A map that is made of the judges' own answers is called circular; one that is not is not.
void CircularMaps()
{
  const auto circular = [](const rcn::Volume& map) { return !Judged(TinyOptions(), map).Get().Report().CircularCases.empty(); };
  const TinyCase shares({ { 1, 1, 1, 1, 0, 0 }, { 1, 1, 0, 0, 0, 0 } });
  rcn::Judging judging(shares.Work.Context(), { "A", "B" }, { { 0, TinyOptions() } });
  judging.Add(NamedCase("shares"), 0, shares.Work.Votes(), { { TinyMap({ 1, 1, 0.5f, 0.5f, 0, 0 }), "p" } });
  judging.Add(NamedCase("other"), 1, shares.Work.Votes(), { { TinyMap({ 1, 0.9f, 0.5f, 0.4f, 0, 0 }), "p" } });
  CHECK(judging.Evaluations().front()->Report().CircularCases == std::vector<std::string>{ "shares" });
  CHECK(!circular(TinyProbability()));
  rcn::Volume noted = TinyProbability();
  noted.SetNote(rcn::FusionNote("staple", { "B", "X" }));
  CHECK(circular(noted));
  noted.SetNote(rcn::FusionNote("staple", { "X", "Y" }));
  CHECK(!circular(noted));
}

/// Nothing predicted where nobody marked anything: no Dice, and the case is named.
/// Beyond a number of voxels the area comes from the histogram, and the report says so.
void TooManyVoxelsForTheExactAuc()
{
  TinyCase one;
  rcn::EvaluationOptions few = TinyOptions(), enough = TinyOptions();
  few.ExactAucVoxels = 7;
  enough.ExactAucVoxels = 8;
  rcn::Judging judge(one.Work.Context(), { "A", "B" }, { { 0, few }, { 0, enough } });
  for (size_t i = 0; i < 2; ++i) // four voxels each
  {
    CHECK(judge.Add(NamedCase("case " + std::to_string(i)), i, one.Work.Votes(), { { TinyProbability(), "p" } }));
  }
  const rcn::EvaluationReport rough = judge.Evaluations()[0]->Report(), exact = judge.Evaluations()[1]->Report();
  CHECK(rough.AucFromHistogram && !exact.AucFromHistogram);
  CHECK(rough.Auc.pairs == rough.Figures[RCN_AUC_PAIRS_HISTOGRAM] && judge.Evaluations()[0]->Auc().pairs == rough.Auc.pairs);
  CHECK_NEAR(rough.Auc.pairs, exact.Auc.pairs, 1e-3);
  const auto isSaid = [](const rcn::EvaluationReport& report) {
    const std::vector<std::string> remarks = rcn::RemarksInWords(report);
    return std::any_of(
      remarks.begin(), remarks.end(), [](const std::string& remark) { return remark.rfind("AUC is approximate", 0) == 0; });
  };
  CHECK(isSaid(rough) && !isSaid(exact));
}

void EmptyReference()
{
  TinyCase nobody({ { 0, 0, 0, 0 }, { 0, 0, 0, 0 } });
  rcn::Judging judge(nobody.Work.Context(), { "A", "B" }, { { 0, TinyOptions() }, { 0, TinyOptions(RCN_REGION_DISPUTED) } });
  CHECK(judge.Add(NamedCase("empty"), 0, nobody.Work.Votes(), { { TinyMap({ 0, 0.1f, 0, 0 }), "p" } }));
  const rcn::EvaluationReport report = judge.Evaluations()[0]->Report();
  CHECK(report.EmptyCases == std::vector<std::string>{ "empty" } && std::isnan(report.Figures[RCN_DICE]));
  CHECK_THROWS(judge.Evaluations()[1]->Report(), RCN_EDATA, "The region is empty in every case");
  CHECK(std::isnan(judge.Evaluations()[1]->Figures()[RCN_MR_ECE]));
}

/// Cases of one patient count as one; five are needed for an interval.
void Patients()
{
  TinyCase one;
  rcn::Judging judge(one.Work.Context(), { "A", "B" }, { { 0, TinyOptions() } });
  for (size_t i = 0; i < 6; ++i)
  {
    const float shift = 0.01f * static_cast<float>(i);
    judge.Add(NamedCase("c" + std::to_string(i), i < 2 ? "p" : ""), i, one.Work.Votes(),
      { { TinyMap({ 0.9f, 0.6f + shift, 0.2f, 0.1f }), "p" } });
  }
  const rcn::EvaluationReport report = judge.Evaluations()[0]->Report();
  CHECK(report.Cases == 6 && report.Patients == 5 && rcn::UnitsInWords(report) == "5 patients");
  CHECK(report.Interval[RCN_MR_ECE].units == 5 && report.Interval[RCN_MR_ECE].low <= report.Figures[RCN_MR_ECE]);
  CHECK_NEAR(judge.Evaluations()[0]->CaseFigures(5)[RCN_MR_ECE], (0.1 + 0.15 + 0.2 + 0.1) / 4, 1e-7);
}

/// A case leaves little behind, however fine its probabilities are; the figures need no more than that.
void CasesAreKeptSmall()
{
  constexpr size_t Voxels = 4096, Cases = 10;
  std::vector<std::vector<uint8_t>> masks(3, std::vector<uint8_t>(Voxels));
  std::vector<float> map(Voxels);
  for (size_t i = 0; i < Voxels; ++i)
  {
    const double off = 16.0 * (static_cast<double>(i) / Voxels - 0.7);
    map[i] = static_cast<float>(1 / (1 + std::exp(-2 * off)));
    for (size_t r = 0; r < masks.size(); ++r)
    {
      masks[r][i] = off > 0.5 * static_cast<double>(r);
    }
  }
  TinyCase one(masks);
  rcn::EvaluationOptions options = TinyOptions();
  options.ExactAuc = false; // four bytes of each voxel
  rcn::Judging judge(one.Work.Context(), { "A", "B", "C" }, { { 0, options } });
  std::vector<uint64_t> bytes;
  for (size_t i = 0; i < Cases; ++i)
  {
    map[i] = 0.5f; // two equal predictions are refused
    CHECK(judge.Add(NamedCase("c" + std::to_string(i)), i, one.Work.Votes(), { { TinyMap(map), "p" } }));
    bytes.push_back(static_cast<uint64_t>(rcn_context_bytes(one.Work.Context())));
  }
  CHECK(bytes.back() - bytes.front() < 25000 * (Cases - 1));
  const rcn::Evaluation& evaluation = *judge.Evaluations().front();
  const rcn::EvaluationReport report = evaluation.Report();
  CHECK(report.Cases == Cases && report.Voxels == static_cast<int64_t>(Cases * Voxels));
  CHECK(report.Auc.reference > 0.9 && report.Interval[RCN_MR_ECE].units == static_cast<int>(Cases));
  CHECK(evaluation.FitWithoutEach(RCN_RECALIB_PLATT).size() == Cases);
  CHECK(static_cast<uint64_t>(rcn_context_bytes(one.Work.Context())) == bytes.back()); // and reading them leaves them small
}

/// A report with these bins: predicted, observed, votes.
rcn::EvaluationReport ReportOf(const std::vector<std::vector<double>>& bins)
{
  rcn::EvaluationReport report;
  for (const std::vector<double>& bin : bins)
  {
    report.Bins.push_back({ bin[0], bin[0], static_cast<int64_t>(bin[2]), bin[0], bin[1] });
  }
  return report;
}

/// The words say what the diagram shows.
void TheVerdictFitsTheCurve()
{
  const auto says = [](const std::vector<std::vector<double>>& bins) { return rcn::DirectionInWords(ReportOf(bins)); };
  CHECK(says({ { 0.3, 0.2, 10 }, { 0.6, 0.5, 10 } }) == "Between 5 % and 95 %, probabilities are too high.");
  CHECK(says({ { 0.3, 0.4, 10 }, { 0.6, 0.7, 10 } }) == "Between 5 % and 95 %, probabilities are too low.");
  CHECK(says({ { 0.3, 0.3, 10 }, { 0.6, 0.6, 10 } }) == "Between 5 % and 95 %, probabilities are well calibrated.");
  // Too sure at the end, too low everywhere else: both are told.
  CHECK(says({ { 0.3, 0.5, 10 }, { 0.6, 0.8, 10 }, { 0.98, 0.8, 500 } }) == "Overconfident above 95 %; below, too low.");
  // One bin with most of the votes does not speak for a curve that lies on the other side.
  CHECK(says({ { 0.1, 0.05, 9000 }, { 0.3, 0.4, 10 }, { 0.6, 0.7, 10 } }) ==
    "Between 5 % and 95 %, too high in some bins, too low in others.");
  CHECK(says({ { 0.01, 0.01, 10 }, { 0.99, 0.99, 10 } }) ==
    "All predictions are near 0 or 1: no probability is between 5 % and 95 %.");
  rcn::EvaluationReport fitted = ReportOf({ { 0.3, 0.3, 10 } });
  CHECK(rcn::RemarksInWords(fitted).empty());
  fitted.FittedHere = true;
  CHECK(rcn::RemarksInWords(fitted).size() == 1 && rcn::RemarksInWords(fitted)[0].find("fitted to this case") > 0);
}

} // namespace

int main()
{
  RUN(KnownAnswers);
  RUN(RegionsDecide);
  RUN(ReadoutsOfLevels);
  RUN(Ties);
  RUN(CircularMaps);
  RUN(TooManyVoxelsForTheExactAuc);
  RUN(EmptyReference);
  RUN(Patients);
  RUN(CasesAreKeptSmall);
  RUN(TheVerdictFitsTheCurve);
  return Failures != 0;
}
