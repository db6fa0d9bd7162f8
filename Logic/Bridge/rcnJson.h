// SPDX-License-Identifier: Apache-2.0
/// Small helpers around jansson, and text files that are never half written.
#ifndef rcnJson_h
#define rcnJson_h

#include <memory>
#include <string>
#include <vector>

#include <jansson.h>

#include "rcnError.h"

namespace rcn
{

struct JsonDeleter
{
  void operator()(json_t* value) const { json_decref(value); }
};
using JsonHandle = std::unique_ptr<json_t, JsonDeleter>;

/// A number, or null where it is not defined: NaN is no JSON.
json_t* JsonNumber(double value);

/// A text; bytes that are no UTF-8 become question marks.
json_t* JsonString(const std::string& text);

json_t* JsonStrings(const std::vector<std::string>& strings);

/// Writes text beside the target and renames it; "-" is standard output; pipes and devices are written
/// to. Throws Error (RCN_EIO).
void WriteText(const std::string& path, const std::string& text);

/// The sentence WriteText() would fail with because of the path alone; empty when it looks writable.
std::string CheckText(const std::string& path);

/// Makes a folder for results, with those above it; throws Error (RCN_EIO) when it cannot.
void MakeFolder(const std::string& path);

/// All of a file; throws Error (RCN_EIO) with its name.
std::string ReadText(const std::string& path);

/// Pretty, with keys in the order they were added, and a line end. Numbers have 17 digits, so that they come back as they were.
std::string JsonText(const json_t* value);

/// The text of a file of results: the object with this program's "version" in front. Every JSON file that is written,
/// except data lists, is made by this.
std::string DocumentText(const json_t* object);

} // namespace rcn

#endif
