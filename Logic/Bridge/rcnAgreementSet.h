// SPDX-License-Identifier: Apache-2.0
/// The raters' agreement over the cases of a data set: means with 95 % intervals over patients, each rater, each pair, and who
/// stands out. Cases come one by one, and a row of numbers is all that is kept of each.
///
///   AgreementSet set(list.Raters);
///   set.Add(one, agreement);                        // for each case: what AgreementJson() says of it
///   const AgreementSummary all = set.Summarize(context);
///   const AgreementSummary marked = set.Summarize(context, SetCases::Marked);
#ifndef rcnAgreementSet_h
#define rcnAgreementSet_h

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "rcn/rcn_interval.h"
#include "rcnDataList.h"
#include "rcnJson.h"

namespace rcn
{

/// A figure over the cases: its mean with an interval, and its range.
struct SetFigure
{
  std::string Key;     ///< in JSON and CSV files
  std::string Name;    ///< as a heading, with its unit
  std::string Meaning; ///< for a reader who does not know it
  int Digits = 3;      ///< after the point, in tables
  rcn_interval Mean{};
  double Lowest = NAN, Highest = NAN;
  size_t Cases = 0; ///< in which it is defined

  std::string MeanText() const;
  std::string IntervalText() const; ///< "0.71 to 0.83"; "–" where there is none
  /// "n = 9" where the figure is defined in fewer than `cases`; otherwise empty.
  std::string CountText(size_t cases) const;
};

/// Figures in the order in which they are shown; only those that some case has.
using SetFigures = std::vector<SetFigure>;

/// The one with that key; null where there is none.
const SetFigure* FigureOf(const SetFigures& figures, const std::string& key);

/// A rater who agrees less with the others than they do among themselves stands out from this difference of Dice on. The test
/// alone would mark more and more raters as cases are added, for differences that nobody sees: 0.05 is what one voxel all
/// around makes of a circle of 40 voxels.
constexpr double RelevantDiceGap = 0.05;

struct SetRater
{
  std::string Name;
  SetFigures Figures;
  double PValue = NAN;    ///< that it agrees with the others as well as they do, corrected for the number of raters (Holm)
  bool StandsOut = false; ///< it does not, by RelevantDiceGap or more
  std::string Sentence;   ///< then: how; also where the difference is smaller, but no chance
};

struct SetPair
{
  std::string A, B;
  SetFigures Figures;
};

struct AgreementSummary
{
  size_t Cases = 0, Patients = 0;
  SetFigures Figures; ///< of all raters together
  std::vector<SetRater> Raters;
  std::vector<SetPair> Pairs;

  /// Who stands out, one sentence each; that nobody does, or cannot be tested, is a sentence too.
  std::vector<std::string> Sentences() const;
};

/// Raters or pairs as a table for people: the figures that tell them apart, in columns that some of them have.
struct SetTable
{
  struct Row
  {
    std::string Name;
    bool Marked;                         ///< stands out
    size_t Cases;                        ///< that have the row; a cell may rest on fewer
    std::vector<const SetFigure*> Cells; ///< by column; null where there is none. They belong to the summary
  };
  std::vector<const SetFigure*> Columns; ///< for headings and meanings
  std::vector<Row> Rows;
};
SetTable RaterTable(const AgreementSummary& summary);
SetTable PairTable(const AgreementSummary& summary);

/// Which cases count: those where nobody marked anything agree perfectly, and say little.
enum class SetCases
{
  All,
  Marked
};

class AgreementSet
{
public:
  /// `structure`: the name of the one of several that it is about, a column of the CSV file; empty: there is one.
  explicit AgreementSet(const std::vector<std::string>& raters, const std::string& structure = "");

  /// `agreement` as AgreementJson() makes it, in this process or another.
  void Add(const Case& one, const json_t* agreement);

  size_t Count() const { return this->Cases_.size(); }
  const std::vector<std::string>& EmptyCases() const { return this->Empty_; } ///< nobody marked anything there

  /// Throws Error when there is no memory.
  AgreementSummary Summarize(rcn_context* context, SetCases which = SetCases::All) const;

  /// "Nobody marked anything in 2 of 20 cases: c03, c07. Their Dice is 1, ..." Empty where there are none.
  std::string EmptyInWords() const;
  /// "Distances are not defined for 6 pairs of raters in 3 cases, ..." Empty where they are for all. Means without these look
  /// better than the raters are.
  std::string UndefinedInWords() const;

  const std::string& Structure() const { return this->Structure_; }

  /// A table in long form, which is not kept: `write` gets a row for each case, rater or pair, and figure, as cases are added,
  /// with the columns of LongHeader(): case, split, patient, (structure,) rater, pair, figure, value.
  void WriteLongRows(std::function<void(const std::string& row)> write) { this->WriteRow_ = std::move(write); }
  std::string LongHeader() const;

  /// Keys: cases, patients, empty_cases, pairs_without_distance, figures, raters, pairs, stand_out, and the same without the
  /// empty cases.
  json_t* Json(rcn_context* context) const;

private:
  /// Of whom: nobody in particular (-1, -1), a rater (a, -1), a pair (a, b).
  struct Place
  {
    int A, B;
    std::string Figure;
    bool operator<(const Place& other) const
    {
      return std::tie(this->A, this->B, this->Figure) < std::tie(other.A, other.B, other.Figure);
    }
  };
  struct Definition;
  static const std::vector<Definition>& OverallDefinitions();
  static const std::vector<Definition>& RaterDefinitions();
  static const std::vector<Definition>& PairDefinitions();

  void Set(int a, int b, const std::string& figure, double value, bool inCsv = true);
  void AddOverall(const JsonReader& agreement);
  void AddRaters(const JsonReader& agreement);
  void AddPairs(const JsonReader& agreement);
  SetFigures FiguresOf(rcn_context* context, const std::vector<Definition>& definitions, int a, int b,
    const std::vector<size_t>& cases, const std::vector<int>& patients) const;

  std::vector<std::string> Raters_, Empty_;
  std::string Structure_;
  std::vector<Case> Cases_; // id, split and patient only
  std::vector<bool> IsEmpty_;
  std::map<Place, std::vector<double>> Columns_; // a number for each case; NaN where it is not defined
  std::function<void(const std::string&)> WriteRow_;
  std::string Unit_; // of the cases' extents
  bool MixedUnits_ = false;
  bool HasPairs_ = false, HasDistances_ = false;    // of some case
  int64_t UndefinedPairs_ = 0, UndefinedCases_ = 0; // where one of the two marked nothing
};

/// What is known after the last case, for a window: it may outlive the set.
struct AgreementOfCases
{
  AgreementSummary All, Marked;
  std::string EmptySentence;          ///< AgreementSet::EmptyInWords()
  std::string Csv;                    ///< the long form
  std::string UndefinedSentence = ""; ///< AgreementSet::UndefinedInWords()
};

} // namespace rcn

#endif
