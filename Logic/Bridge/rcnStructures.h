// SPDX-License-Identifier: Apache-2.0
/// Several structures in one case: names, and the label values that mean them in raters' label maps. A voxel belongs to at
/// most one of them. They are numbered from 1 in their order; 0 is the background, or all of them where one is asked for.
#ifndef rcnStructures_h
#define rcnStructures_h

#include <cstdint>
#include <string>
#include <vector>

#include "rcnJson.h"

namespace rcn
{

/// Of a label value, and of its opposite: every element type that can hold it holds it exactly.
constexpr int64_t LargestLabel = int64_t(1) << 53;

struct Structure
{
  std::string Name;
  std::vector<int64_t> Values; ///< at least one, none of them 0
};

/// Why these cannot be structures of one case: too many, a name or a value twice, ... A sentence without a capital, to follow
/// "list.json: "; empty: they can.
std::string CheckStructures(const std::vector<Structure>& structures);

/// The number of the structure with that name, from 1. Throws Error (RCN_EINVALID) with the names that there are.
int FindStructure(const std::vector<Structure>& structures, const std::string& name);

/// "kidney=1" or "liver=2,3". Throws Error (RCN_EINVALID).
Structure ParseStructure(const std::string& argument);

/// Label values, whole numbers with commas between them: "1,3". False for anything else.
bool ParseLabelValues(std::vector<int64_t>& values, const std::string& text);

/// As models and manifests store them: [{"name": "kidney", "values": [1]}, ...].
Json StructuresJson(const std::vector<Structure>& structures);

/// The same back; empty where the key is absent. Throws the reader's Error for what CheckStructures() would refuse.
std::vector<Structure> StructuresFrom(const JsonReader& reader, const std::string& key = "structures");

std::vector<std::string> NamesOf(const std::vector<Structure>& structures);

/// What stands for each structure in a map of labels: its first label value, where these are 1 ... 255, otherwise its number.
std::vector<uint8_t> LabelValues(const std::vector<Structure>& structures);

} // namespace rcn

#endif
