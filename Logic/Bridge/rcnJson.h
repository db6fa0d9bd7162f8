// SPDX-License-Identifier: Apache-2.0
/// Small helpers around jansson.
///
/// Writing: every value becomes a Json by itself, so that an object reads like the JSON that it makes.
///
///   JsonObject object{ { "raters", 3 }, { "mean_dice", dice }, { "names", names } };
///   object.Set("bins", bins);
///   WriteText(path, DocumentText(object.Get()));
///
/// Reading: JsonReader hands out fields of the expected type and range, or throws one kind of sentence.
///
///   const JsonHandle root = ParseJson(text, path + " is not a valid recalibration file");
///   const JsonReader reader(root.get(), path + " is not a valid recalibration file");
///   const std::string method = reader.Text("method");
#ifndef rcnJson_h
#define rcnJson_h

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <jansson.h>

#include "rcnError.h"
#include "rcnFile.h"

namespace rcn
{

struct JsonDeleter
{
  void operator()(json_t* value) const { json_decref(value); }
};
using JsonHandle = std::unique_ptr<json_t, JsonDeleter>;

// These return a new reference, which the caller owns.

/// A number, or null where it is not defined: JSON has no NaN.
json_t* JsonNumber(double value);

/// A text; bytes that are not UTF-8 become question marks.
json_t* JsonString(const std::string& text);

json_t* JsonStrings(const std::vector<std::string>& strings);

/// One value, shared by its copies. Made of whatever a value of JSON can be.
class Json
{
public:
  /// Takes over a new reference, as jansson's functions return it.
  Json(json_t* owned) : Value_(owned) {}
  Json(double value) : Value_(JsonNumber(value)) {}
  Json(const char* text) : Value_(JsonString(text)) {}
  Json(const std::string& text) : Value_(JsonString(text)) {}
  Json(std::nullptr_t) : Value_(json_null()) {}
  template <class T, std::enable_if_t<std::is_integral<T>::value || std::is_enum<T>::value, int> = 0> Json(T value)
    : Value_(std::is_same<T, bool>::value ? json_boolean(value) : json_integer(static_cast<json_int_t>(value)))
  {
  }
  /// Lists of any of these.
  template <class T> Json(const T* values, size_t count) : Value_(json_array())
  {
    for (size_t i = 0; i < count; ++i)
    {
      json_array_append_new(this->Get(), Json(values[i]).Release());
    }
  }
  template <class T> Json(const std::vector<T>& values) : Json(values.data(), values.size()) {}
  /// An object of any of these, by key.
  template <class T> Json(const std::map<std::string, T>& values) : Value_(json_object())
  {
    for (const auto& value : values)
    {
      json_object_set_new(this->Get(), value.first.c_str(), Json(value.second).Release());
    }
  }
  Json(const Json& other) : Value_(json_incref(other.Get())) {}
  Json(Json&&) = default;
  Json& operator=(Json other)
  {
    this->Value_ = std::move(other.Value_);
    return *this;
  }

  json_t* Get() const { return this->Value_.get(); }
  /// Gives the reference away, to a function of jansson that takes it or to a caller.
  json_t* Release() { return this->Value_.release(); }

private:
  JsonHandle Value_;
};

/// An object; keys stay in the order in which they were set.
class JsonObject : public Json
{
public:
  JsonObject() : Json(json_object()) {}
  /// Takes over an object that somebody else has begun.
  explicit JsonObject(json_t* owned) : Json(owned) {}
  JsonObject(std::initializer_list<std::pair<std::string, Json>> fields) : JsonObject()
  {
    for (const auto& field : fields)
    {
      this->Set(field.first, field.second);
    }
  }
  JsonObject& Set(const std::string& key, Json value)
  {
    json_object_set_new(this->Get(), key.c_str(), value.Release());
    return *this;
  }
};

/// A list of values of different kinds, or one that grows.
class JsonArray : public Json
{
public:
  JsonArray() : Json(json_array()) {}
  JsonArray(std::initializer_list<Json> values) : JsonArray()
  {
    for (const Json& value : values)
    {
      this->Add(value);
    }
  }
  JsonArray& Add(Json value)
  {
    json_array_append_new(this->Get(), value.Release());
    return *this;
  }
};

/// Throws Error (RCN_EFORMAT): `about`, ": it is not valid JSON", where, and `remedy`. Keys that occur twice are an error too.
JsonHandle ParseJson(const std::string& text, const std::string& about, const std::string& remedy = "");

/// The fields of an object from a file that may hold anything. A field of another type, or outside its range, throws
/// Error (RCN_EFORMAT): `about`, ": ", which key must be what, and `remedy`. Borrows the object.
///
/// A method with a fallback returns it where the key is absent; the one without throws. Lists that are absent are empty.
class JsonReader
{
public:
  JsonReader(const json_t* object, const std::string& about, const std::string& remedy = "")
    : Object_(object), About_(about), Remedy_(remedy)
  {
  }

  /// Throws the sentence; `what` ends with a full stop.
  [[noreturn]] void Fail(const std::string& what) const;

  bool Has(const std::string& key) const { return this->Get(key) != nullptr; }
  const json_t* Get(const std::string& key) const { return json_object_get(this->Object_, key.c_str()); }

  std::string Text(const std::string& key) const;
  std::string Text(const std::string& key, const std::string& fallback) const;
  bool Boolean(const std::string& key) const;
  bool Boolean(const std::string& key, bool fallback) const;
  int64_t WholeNumber(const std::string& key, int64_t low, int64_t high) const;
  int64_t WholeNumber(const std::string& key, int64_t low, int64_t high, int64_t fallback) const;
  double Number(const std::string& key, double low, double high) const;
  double Number(const std::string& key, double low, double high, double fallback) const;

  std::vector<const json_t*> Array(const std::string& key) const;
  std::vector<double> Numbers(const std::string& key, double low = -HUGE_VAL, double high = HUGE_VAL) const;
  std::vector<int64_t> WholeNumbers(const std::string& key, int64_t low, int64_t high) const;
  std::vector<std::string> Texts(const std::string& key) const;
  std::map<std::string, std::string> TextsByKey(const std::string& key) const; ///< an object that holds texts only

  /// Readers for what is inside; the object that is absent is empty.
  JsonReader Object(const std::string& key) const;
  std::vector<JsonReader> Objects(const std::string& key) const;

private:
  [[noreturn]] void Refuse(const std::string& key, const std::string& kind) const;

  const json_t* Object_;
  std::string About_, Remedy_;
};

/// Pretty, with keys in the order they were added, and a line end. Numbers have 17 digits, so that they come back as they were.
std::string JsonText(const json_t* value);

/// The same on one line without spaces or a line end, for metadata inside other files.
std::string CompactJsonText(const json_t* value);

/// The text of a file of results: the object with this program's "version" in front. Every JSON file that is written,
/// except data lists, is made by this.
std::string DocumentText(const json_t* object);

/// A file of results whose first key is a list that grows, so that the list is never in memory. Byte by byte it is what
/// DocumentText() makes of the whole.
class DocumentFile
{
public:
  /// `path` as of TextFile.
  DocumentFile(const std::string& path, const std::string& listKey);

  void Add(const json_t* one);

  /// Adds the other keys and completes the file.
  void Commit(const json_t* others);

private:
  TextFile File_;
  bool HasSome_ = false;
};

} // namespace rcn

#endif
