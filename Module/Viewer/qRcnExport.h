// SPDX-License-Identifier: Apache-2.0
/// Files for use elsewhere: pictures, tables, maps, models, a report. Each is written in a job, never over a file that the
/// session reads, and a remark says where it went.
#ifndef qRcnExport_h
#define qRcnExport_h

#include <functional>

#include <QImage>
#include <QObject>

#include "rcn/rcn_slice.h"
#include "rcnSession.h"

class qRcnDocument;
class qRcnJobs;

class qRcnExport : public QObject
{
  Q_OBJECT
public:
  qRcnExport(qRcnDocument* document, qRcnJobs* jobs, QObject* parent = nullptr);

  void picture(const QImage& picture, const QString& path);
  /// A slice of the open case for a slide, 1920 x 1080, with legend and without widgets: raters and the overlay in front. PNG
  /// or SVG.
  void slide(const QString& path, const rcn_slice& slice, bool anonymous = false);
  /// The agreement of the open case, as CSV text.
  void agreement(const QString& csv, const QString& path);
  /// The overlay in front: its probability where it has one, otherwise its levels.
  void overlay(const QString& path);
  /// What was judged last: SVG, PNG, or its bins as CSV.
  void reliability(const QString& path);
  /// The model in use.
  void model(const QString& path);
  /// The cases that were judged last, or all with raters. Where the open case has no raters: its own page, by the model in use.
  void report(const QString& path, bool anonymous = false);

private:
  /// `write` runs on a worker's thread and returns what a person should know, or nothing.
  void write(const QString& path, const std::function<std::string(const rcn::SessionProgress&)>& write);

  qRcnDocument* Document;
  qRcnJobs* Jobs;
};

#endif
