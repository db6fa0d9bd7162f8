// SPDX-License-Identifier: Apache-2.0
/// The viewer as a person uses it: the steps of the tutorial, bad files, closing at a bad moment, and a GUI thread that is
/// never kept busy for long.
#include <QtTest>

#include <ctime>

#include <QAction>
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDoubleSpinBox>
#include <QDropEvent>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMessageBox>
#include <QMimeData>
#include <QPushButton>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTabWidget>
#include <QTableWidget>
#include <QToolButton>

#include <itkObject.h>

#include "qRcnAbout.h"
#include "qRcnAgreement.h"
#include "qRcnCalibrationPanel.h"
#include "qRcnCases.h"
#include "qRcnCompareView.h"
#include "qRcnConsensusPanel.h"
#include "qRcnDisputes.h"
#include "qRcnDocument.h"
#include "qRcnExport.h"
#include "qRcnJobs.h"
#include "qRcnMainWindow.h"
#include "qRcnNotice.h"
#include "qRcnRecent.h"
#include "qRcnReliabilityDiagram.h"
#include "qRcnShortcuts.h"
#include "qRcnSliceCanvas.h"
#include "qRcnSliceView.h"
#include "qRcnStructures.h"
#include "qRcnStyle.h"
#include "qRcnOrthogonalViews.h"
#include "qRcnOverlayControls.h"
#include "qRcnTrainingMonitor.h"
#include "qRcnTasks.h"
#include "qRcnTest.h"
#include "qRcnTrainingPanel.h"
#include "qRcnVoxelProbe.h"
#include "rcn/rcn.h"
#include "rcnStructureData.h"

namespace
{

#if defined(__SANITIZE_ADDRESS__)
constexpr bool Sanitized = true;
#else
constexpr bool Sanitized = false;
#endif

constexpr int Patience = 120000; // ms: a machine may be slow, a test must not fail for it

/// What each event costs the GUI thread, in time of that thread alone: a busy machine makes it wait, not work.
class Watchdog : public QApplication
{
public:
  using QApplication::QApplication;

  bool notify(QObject* receiver, QEvent* event) override
  {
    if (this->Depth++ > 0)
    {
      const bool inner = QApplication::notify(receiver, event);
      --this->Depth;
      return inner;
    }
    const QByteArray name = receiver->metaObject()->className();
    const int type = event->type();
    const double begin = Now();
    const bool result = QApplication::notify(receiver, event);
    const double took = 1000 * (Now() - begin);
    --this->Depth;
    if (took > this->Longest)
    {
      this->Longest = took;
      this->Who = name + ", event " + QByteArray::number(type);
    }
    return result;
  }

  void forget()
  {
    this->Longest = 0;
    this->Who.clear();
  }

  double Longest = 0; ///< ms
  QByteArray Who;

private:
  static double Now()
  {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  int Depth = 0;
};

QString Path(const std::string& path)
{
  return QString::fromStdString(path);
}

/// A window with places of its own, and a small network to train.
class Window : public qRcnMainWindow
{
public:
  static constexpr int Endless = 1000000;

  explicit Window(const Folder& folder, int epochs = 3)
    : qRcnMainWindow({ Path(folder / "settings.ini"), Path(folder / "unsaved") })
  {
    rcn::TrainingOptions tiny;
    tiny.Workspace.Threads = 1;
    tiny.Net.width = 8;
    tiny.Net.depth = 2;
    tiny.Batch = 2;
    tiny.Rate = 0.01;
    tiny.Epochs = epochs;
    tiny.Recalibrate = false; // correcting is a step of its own in most tests
    this->setTrainingDefaults(tiny);
    connect(this->tasks(), &qRcnTasks::trainingProgressed, this, [this] { ++this->Steps; });
    this->resize(1500, 950);
    this->show();
    (void)QTest::qWaitForWindowExposed(this);
    QApplication::setActiveWindow(this); // there may be no window manager to do it
  }

  QAction* action(const char* name) { return this->findChild<QAction*>(name); }

  bool done()
  {
    return QTest::qWaitFor([this] { return !this->jobs()->work()->isRunning(); }, Patience);
  }
  bool doneTraining()
  {
    return QTest::qWaitFor([this] { return !this->jobs()->training()->isRunning(); }, Patience);
  }

  bool open(const std::string& path)
  {
    this->document()->openFiles({ Path(path) });
    return this->done();
  }

  void drop(const std::vector<std::string>& paths)
  {
    QMimeData files;
    QList<QUrl> urls;
    for (const std::string& path : paths)
    {
      urls << QUrl::fromLocalFile(Path(path));
    }
    files.setUrls(urls);
    QDragEnterEvent enter(QPoint(400, 300), Qt::CopyAction, &files, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(this, &enter);
    QDropEvent event(QPointF(400, 300), Qt::CopyAction, &files, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(this, &event);
  }

  /// Clicks a case in the list.
  void clickCase(const QString& id)
  {
    auto* table = this->cases()->findChild<QTableWidget*>("cases");
    for (int row = 0; table && row < table->rowCount(); ++row)
    {
      for (int column = 0; column < table->columnCount(); ++column)
      {
        if (table->item(row, column) && table->item(row, column)->text() == id)
        {
          table->scrollToItem(table->item(row, column));
          QTest::mouseClick(
            table->viewport(), Qt::LeftButton, Qt::NoModifier, table->visualItemRect(table->item(row, column)).center());
          return;
        }
      }
    }
    QFAIL(qPrintable("no case " + id));
  }

  /// Presses Train, and waits until the network learns.
  bool beginTraining()
  {
    this->Steps = 0;
    this->training()->findChild<QPushButton*>("train")->click();
    return QTest::qWaitFor([this] { return this->Steps > 0; }, Patience);
  }

  bool trainQuickly()
  {
    this->training()->findChild<QPushButton*>("train")->click();
    return this->doneTraining() && this->training()->monitor()->state() == qRcnTrainingMonitor::Finished;
  }

  /// Closes without a question.
  bool closeAtOnce()
  {
    this->close();
    this->close();
    return QTest::qWaitFor([this] { return !this->isVisible(); }, Patience);
  }

private:
  int Steps = 0; ///< of the training that the window has shown
};

PhantomSet Volumes()
{
  PhantomSet set;
  set.Size[0] = 40;
  set.Size[1] = 32;
  set.Size[2] = 6;
  set.Training = 4;
  set.Test = 2;
  return set;
}

bool IsColor(const QColor& a, const QColor& b)
{
  return std::abs(a.red() - b.red()) + std::abs(a.green() - b.green()) + std::abs(a.blue() - b.blue()) < 60;
}

/// Pixels of about this color.
int Count(const QImage& picture, const QColor& color)
{
  int count = 0;
  for (int y = 0; y < picture.height(); ++y)
  {
    for (int x = 0; x < picture.width(); ++x)
    {
      count += IsColor(picture.pixelColor(x, y), color);
    }
  }
  return count;
}

} // namespace

class TestMainWindow : public QObject
{
  Q_OBJECT
private slots:
  void initTestCase() { itk::Object::GlobalWarningDisplayOff(); }

  /// From the first case to a saved workspace, and back.
  void wholeStory()
  {
    const Folder folder;
    const std::string list = WritePhantomList(folder, Volumes());
    const std::string saved = folder / "study.rcn.json";
    {
      Window window(folder);
      QVERIFY(!window.action("compareRaters")->isEnabled());
      QVERIFY(window.findChild<QLabel*>("research")->isVisible());

      // Open a data list; click a case.
      QVERIFY(window.open(list));
      QCOMPARE(window.notice()->text(), QString());
      QCOMPARE(window.document()->session().Cases.size(), size_t(8));
      QVERIFY(window.windowTitle().startsWith("c0"));
      window.clickCase("c2");
      QVERIFY(window.done());
      QVERIFY(window.windowTitle().startsWith("c2"));
      QCOMPARE(window.cases()->currentCase(), QString("c2"));
      QCOMPARE(window.cases()->status("c2"), qRcnCases::Read);

      // Toggle a rater: the outline goes.
      QListWidget* raters = window.consensus()->raters();
      QCOMPARE(raters->count(), 3);
      window.scene()->setHeatMapVisible(false);
      const QColor color = window.scene()->raterColor(1);
      QVERIFY(QTest::qWaitFor([&] { return Count(window.slices()->picture(), color) > 10; }));
      const int before = Count(window.slices()->picture(), color);
      raters->item(1)->setCheckState(Qt::Unchecked);
      QVERIFY(!window.scene()->isRaterVisible(1));
      QVERIFY(QTest::qWaitFor([&] { return Count(window.slices()->picture(), color) < before - 10; }));

      // Compare raters, visit the disputed regions.
      window.action("compareRaters")->trigger();
      QVERIFY(window.done());
      QCOMPARE(window.panelName(), QString("agreement"));
      QVERIFY(window.agreement()->csv().contains("A"));
      QVERIFY(window.disputes()->count() > 0);
      QCOMPARE(window.disputes()->current(), 0);
      const qRcnScene::Voxel first = window.scene()->cursor();
      QTest::keyClick(&window, Qt::Key_N);
      if (window.disputes()->count() > 1)
      {
        QCOMPARE(window.disputes()->current(), 1);
        QVERIFY(window.scene()->cursor() != first);
      }

      // Fuse.
      window.action("fuse-staple")->trigger();
      QVERIFY(window.done());
      QCOMPARE(window.scene()->predictionCount(), 1);
      QCOMPARE(window.scene()->shownPrediction(), 0);
      QCOMPARE(window.consensus()->layers()->currentText(), QString("staple"));

      // Train a small model; keep it.
      QVERIFY(!window.action("predictCase")->isEnabled());
      window.action("train")->trigger();
      QCOMPARE(window.panelName(), QString("training"));
      window.training()->findChild<QPushButton*>("train")->click();
      QVERIFY(window.jobs()->training()->isRunning());
      QCOMPARE(window.training()->monitor()->state(), qRcnTrainingMonitor::Running);
      QVERIFY(window.doneTraining());
      QCOMPARE(window.training()->monitor()->state(), qRcnTrainingMonitor::Finished);
      QTest::mouseClick(window.training()->monitor()->findChild<QPushButton*>("keep"), Qt::LeftButton);
      QCOMPARE(window.document()->session().Model, std::string("ordinal"));
      QVERIFY(window.document()->isUnsaved());

      // Predict, evaluate, click a bin.
      window.action("predictCase")->trigger();
      QVERIFY(window.done());
      QCOMPARE(window.consensus()->layers()->currentText(), QString("ordinal"));
      QCOMPARE(window.scene()->readout(), static_cast<int>(RCN_READOUT_EXPECTED)); // the readout that is calibrated
      QCOMPARE(window.cases()->status("c2"), qRcnCases::Predicted);
      window.action("evaluate")->trigger();
      QVERIFY(window.done());
      QVERIFY2(window.calibration()->diagram()->hasReport(), qPrintable(window.notice()->text()));
      QCOMPARE(window.document()->session().Evaluation.Split, std::string("test"));
      QCOMPARE(window.cases()->status("c7"), qRcnCases::Predicted);
      auto* store = window.calibration()->findChild<QPushButton*>("store");
      QVERIFY(!store->isHidden());
      auto* record = window.calibration()->findChild<QLabel*>("record");
      QVERIFY(!record->text().contains("On test cases"));
      QTest::mouseClick(store, Qt::LeftButton);
      QVERIFY(window.done());
      QVERIFY2(window.notice()->text().contains("Stored in ordinal: MR-ECE"), qPrintable(window.notice()->text()));
      QVERIFY2(record->text().contains("On test cases: MR-ECE"), qPrintable(record->text()));
      auto* levels = window.calibration()->diagram()->findChild<qRcnTable*>("levelFigures");
      QVERIFY(!levels->isHidden());
      QCOMPARE(levels->columnCount(), 1);
      QVERIFY(window.calibration()->diagram()->findChild<QWidget*>("levelCurve3"));
      auto* shares = window.calibration()->diagram()->findChild<qRcnTable*>("levelShares");
      QVERIFY(!shares->isHidden());
      QCOMPARE(shares->rowCount(), 4); // none to all of three raters
      QCOMPARE(shares->columnCount(), 4);
      auto* curve = window.calibration()->diagram()->findChild<QWidget*>("curve");
      QVERIFY(curve);
      curve->setFocus();
      QTest::keyClick(curve, Qt::Key_Right);
      double lower = -1, upper = -1;
      QVERIFY(window.calibration()->diagram()->selectedBin(lower, upper));
      QVERIFY(window.scene()->hasHighlight());
      QCOMPARE(window.scene()->highlightUpper(), upper);
      QCOMPARE(window.consensus()->layers()->currentText(), QString("ordinal"));
      QTest::keyClick(curve, Qt::Key_Escape);
      QVERIFY(!window.scene()->hasHighlight());

      // Recalibrate: the corrected copy is the model in use.
      window.action("recalibrate")->trigger();
      QVERIFY(window.done());
      QVERIFY2(!window.notice()->isError(), qPrintable(window.notice()->text()));
      QCOMPARE(window.document()->session().Model, std::string("ordinal-temperature"));
      QVERIFY(window.calibration()->findChild<QLabel*>("about")->text().contains("before"));
      QVERIFY(store->isHidden()); // validation cases, to which it was fitted
      QCOMPARE(levels->columnCount(), 2);
      QCOMPARE(shares->columnCount(), 3); // before and after

      // Export.
      window.exporter()->picture(window.picture(), Path(folder / "views.png"));
      QVERIFY(window.done());
      QVERIFY(!QImage(Path(folder / "views.png")).isNull());
      window.exporter()->agreement(window.agreementTable(), Path(folder / "agreement.csv"));
      QVERIFY(window.done());
      QVERIFY(TextOf(folder / "agreement.csv").find("B") != std::string::npos);
      window.exporter()->reliability(Path(folder / "reliability.svg"));
      QVERIFY(window.done());
      QVERIFY(TextOf(folder / "reliability.svg").find("<svg") != std::string::npos);
      window.exporter()->reliability(Path(folder / "reliability.csv"));
      QVERIFY(window.done());
      QVERIFY(TextOf(folder / "reliability.csv").find("model_says") != std::string::npos);
      window.exporter()->overlay(Path(folder / "overlay.nrrd"));
      QVERIFY(window.done());
      QCOMPARE(rcn::ReadImageHeader(folder / "overlay.nrrd").Geometry().size[0], int64_t(40));
      window.exporter()->model(Path(folder / "mine.safetensors"));
      QVERIFY(window.done());
      QVERIFY(std::filesystem::file_size(folder / "mine.safetensors") > 1000);
      window.exporter()->report(Path(folder / "report.html"));
      QVERIFY(window.done());
      QVERIFY2(TextOf(folder / "report.html").find("</html>") != std::string::npos, qPrintable(window.notice()->text()));
      window.exporter()->picture(window.picture(), Path(folder / "nowhere/views.png"));
      QVERIFY(window.done());
      QVERIFY(window.notice()->isError());

      // Save as it is.
      window.scene()->setCursor({ 11, 12, 3 });
      window.scene()->setWindow(-0.25, 1.25);
      window.scene()->setThreshold(0.3);
      window.scene()->setPredictionOpacity(0.8);
      window.setLayoutName("compare");
      window.setPanelName("calibration");
      window.document()->saveWorkspace(Path(saved));
      QVERIFY(window.done());
      QVERIFY2(std::filesystem::exists(saved), qPrintable(window.notice()->text()));
      QVERIFY(!window.document()->isUnsaved());
      QVERIFY(window.windowTitle().contains("study.rcn.json"));
      window.close();
      QVERIFY(!window.isVisible());
    }
    // The unsaved place has nothing that is still needed.
    QVERIFY(!std::filesystem::exists(folder / "unsaved") || std::filesystem::is_empty(folder / "unsaved"));
    {
      Window window(folder);
      QVERIFY(window.open(saved));
      QVERIFY(window.done()); // evaluating anew
      QCOMPARE(window.document()->session().Current, std::string("c2"));
      QCOMPARE(window.document()->session().Model, std::string("ordinal-temperature"));
      QCOMPARE(window.document()->session().Models.size(), size_t(2));
      QCOMPARE(window.scene()->cursor(), (qRcnScene::Voxel{ 11, 12, 3 }));
      QCOMPARE(window.scene()->black(), -0.25);
      QCOMPARE(window.scene()->white(), 1.25);
      QCOMPARE(window.scene()->threshold(), 0.3);
      QCOMPARE(window.scene()->predictionOpacity(), 0.8);
      QVERIFY(!window.scene()->isRaterVisible(1) && window.scene()->isRaterVisible(0));
      QVERIFY(!window.scene()->isHeatMapVisible());
      QCOMPARE(window.layoutName(), QString("compare"));
      QCOMPARE(window.panelName(), QString("calibration"));
      QCOMPARE(window.consensus()->layers()->currentText(), QString("ordinal"));
      QCOMPARE(window.scene()->predictionCount(), 2); // the model's and STAPLE
      QVERIFY(QTest::qWaitFor([&] { return window.calibration()->diagram()->hasReport(); }, Patience));
      QVERIFY(window.done());
      QVERIFY(window.calibration()->findChild<QLabel*>("about")->text().contains("before"));
      QCOMPARE(window.compare()->titles().size(), 2 + 1 + 2); // a hidden rater has no panel
      QVERIFY(!window.document()->isUnsaved());
      window.close();
      QVERIFY(!window.isVisible());
    }
  }

  /// Every panel and layout at small sizes, with usual and with large letters: before anything is open, with raters, with a
  /// model that was trained, judged and corrected.
  void nothingIsCutInASmallWindow_data()
  {
    QTest::addColumn<QSize>("size");
    QTest::addColumn<int>("letters");
    QTest::newRow("900 x 700") << QSize(900, 700) << 13;
    QTest::newRow("900 x 700, large letters") << QSize(900, 700) << 15;
    QTest::newRow("1280 x 720, large letters") << QSize(1280, 720) << 15;
  }

  void nothingIsCutInASmallWindow()
  {
    QFETCH(QSize, size);
    QFETCH(int, letters);
    const QFont before = QApplication::font();
    QFont font("DejaVu Sans");
    font.setPixelSize(letters);
    QApplication::setFont(font);
    const Folder folder;
    Window window(folder);
    const auto complaints = [&] {
      QStringList cut = CutOff(window);
      if (window.size() != size)
      {
        cut << QString("the window is %1 x %2").arg(window.width()).arg(window.height());
      }
      for (const qRcnSliceCanvas* canvas : window.slices()->findChildren<qRcnSliceCanvas*>())
      {
        if (canvas->isVisible() && canvas->width() < 200) // title, window and the line about research
        {
          cut << QString("a slice is only %1 wide").arg(canvas->width());
        }
      }
      return cut;
    };
    const auto look = [&](const char* when) {
      QStringList cut;
      for (const char* layout : { "slices", "compare" })
      {
        window.setLayoutName(layout);
        for (const char* panel : { "consensus", "agreement", "calibration", "training" })
        {
          window.setPanelName(panel);
          const auto settled = [&] {
            window.resize(size); // again, because what was wider before its layout settled has held the window
            return complaints().isEmpty();
          };
          (void)QTest::qWaitFor(settled, 2000);
          for (const QString& one : complaints())
          {
            cut << QString("%1, %2, %3: %4").arg(when, layout, panel, one);
          }
          if (qEnvironmentVariableIsSet("RCN_SHOTS"))
          {
            window.grab().save(QString("%1/%2x%3_%4_%5_%6_%7.png")
                .arg(qEnvironmentVariable("RCN_SHOTS"))
                .arg(size.width())
                .arg(size.height())
                .arg(letters)
                .arg(when, layout, panel));
          }
        }
      }
      return cut.join('\n');
    };
    QCOMPARE(look("empty"), QString());
    QVERIFY(window.open(WritePhantomList(folder, Volumes())));
    QCOMPARE(look("open"), QString());
    window.action("compareRaters")->trigger();
    QVERIFY(window.done());
    window.action("fuse-soft-gaussian")->trigger();
    QVERIFY(window.done());
    window.consensus()->showVoxel(true, 20, 16, 3);
    QCOMPARE(look("compared"), QString());
    QVERIFY(window.trainQuickly());
    QCOMPARE(look("trained"), QString());
    window.tasks()->keepModel();
    window.action("predictCase")->trigger();
    QVERIFY(window.done());
    window.consensus()->showVoxel(true, 20, 16, 3);
    window.action("evaluate")->trigger();
    QVERIFY(window.done());
    QCOMPARE(look("judged"), QString());
    window.action("recalibrate")->trigger();
    QVERIFY(window.done());
    QCOMPARE(look("corrected"), QString());
    QVERIFY(window.closeAtOnce());
    QApplication::setFont(before);
  }

  /// N goes there also in views that are zoomed in and moved elsewhere.
  void disputedPlaceComesIntoSight()
  {
    const Folder folder;
    Window window(folder);
    QVERIFY(window.open(WritePhantomList(folder, Volumes())));
    QVERIFY(window.disputes()->count() > 1);
    for (const char* layout : { "slices", "compare" })
    {
      window.setLayoutName(layout);
      const QWidget* views = QString(layout) == "compare" ? static_cast<QWidget*>(window.compare()) : window.slices();
      QTRY_VERIFY(views->isVisible() && !views->findChildren<qRcnSliceCanvas*>().isEmpty());
      window.disputes()->setCurrent(0);
      const QList<qRcnSliceCanvas*> canvases = window.findChildren<qRcnSliceCanvas*>();
      for (qRcnSliceCanvas* canvas : canvases)
      {
        canvas->setZoom(32);
      }
      for (int i = 1; i < window.disputes()->count(); ++i)
      {
        QTest::keyClick(&window, Qt::Key_N);
        QCOMPARE(window.disputes()->current(), i);
        for (const qRcnSliceCanvas* canvas : canvases)
        {
          QVERIFY(!canvas->isVisible() || canvas->rect().contains(canvas->placeOf(window.scene()->cursor()).toPoint()));
        }
      }
    }
    QVERIFY(window.closeAtOnce());
  }

  /// Each action without what it needs says which thing that is.
  void saysWhatIsMissing()
  {
    const Folder folder;
    const std::string list = WritePhantomList(folder, Volumes());
    Window window(folder);
    const auto hint = [&window](const char* name) {
      return window.action(name)->isEnabled() ? QString("enabled") : window.action(name)->toolTip().section('\n', 1);
    };
    QCOMPARE(window.findChild<QAction*>("evaluate")->isEnabled(), false);
    QCOMPARE(hint("evaluate"), QString("Train a model or open one first."));
    QCOMPARE(hint("recalibrate"), QString("Train a model or open one first."));
    QCOMPARE(hint("predictCase"), QString("Open a case first."));
    QCOMPARE(hint("compareRaters"), QString("Open a case with raters' masks first."));
    QCOMPARE(hint("fuse-staple"), QString("Open a case with raters' masks first."));
    QCOMPARE(hint("save"), QString("Open a case first."));
    QCOMPARE(hint("exportReliability"), QString("Evaluate a model first."));
    window.evaluate(); // as by --do
    QCOMPARE(window.notice()->text(), QString("There is no model yet; open one or train one."));
    window.recalibrate();
    QCOMPARE(window.notice()->text(), QString("There is no model yet; open one or train one."));

    QVERIFY(window.open(list));
    QCOMPARE(hint("predictCase"), QString("Train a model or open one first."));
    QCOMPARE(hint("compareRaters"), QString("enabled"));
    QCOMPARE(hint("exportOverlay").left(24), QString("Choose an overlay first:"));
    QVERIFY(window.trainQuickly());
    window.tasks()->keepModel();
    const std::string model = folder / "model.safetensors";
    window.exporter()->model(Path(model));
    QVERIFY(window.done());
    QVERIFY(window.closeAtOnce());

    // A model and an image, but nobody's masks.
    const Folder other;
    Window alone(other);
    QVERIFY(alone.open(model));
    auto* record = alone.calibration()->findChild<QLabel*>("record");
    QVERIFY2(record->text().startsWith("It was trained on 4 cases of 3 raters"), qPrintable(record->text()));
    QVERIFY(!record->isHidden() && record->toolTip().contains("Hash of the weights"));
    alone.action("evaluate")->trigger();
    QVERIFY(alone.done());
    QCOMPARE(alone.notice()->text(),
      QString("There are no cases to evaluate model on; open images with raters' masks, or a data list."));
    QVERIFY(alone.open(folder / "c0.nrrd"));
    QCOMPARE(alone.document()->session().Cases.size(), size_t(1));
    QVERIFY(!alone.action("compareRaters")->isEnabled());
    QVERIFY(alone.action("compareRaters")->toolTip().contains("This case has no raters' masks"));
    QVERIFY(alone.action("exportReport")->isEnabled());
    alone.exporter()->report(Path(other / "patient.html"));
    QVERIFY(alone.done());
    QVERIFY2(
      TextOf(other / "patient.html").find("Predicted volume: c0") != std::string::npos, qPrintable(alone.notice()->text()));
    alone.action("evaluate")->trigger();
    QVERIFY(alone.done());
    QCOMPARE(alone.notice()->text(),
      QString("No case has raters' masks to evaluate a model with; open masks, or a data list with labels."));
    alone.action("recalibrate")->trigger();
    QVERIFY(alone.done());
    QVERIFY2(alone.notice()->text().contains("validation cases with raters' masks, and there are none"),
      qPrintable(alone.notice()->text()));
    QVERIFY(alone.closeAtOnce());
  }

  /// The probe names the map it reads.
  void probeNamesTheOverlay()
  {
    const Folder folder;
    Window window(folder);
    QVERIFY(window.open(WritePhantomList(folder, Volumes())));
    const qRcnScene::Voxel at = window.scene()->cursor();
    const auto said = [&] {
      window.consensus()->showVoxel(true, at[0], at[1], at[2]);
      return window.consensus()->probe()->sentence().section(';', 1).replace(QChar(0xa0), ' ').simplified();
    };
    QCOMPARE(said(), QString());
    const auto* meaning = window.consensus()->controls()->findChild<QLabel*>("meaning");
    QVERIFY2(!meaning->text().contains("one probability"), qPrintable(meaning->text())); // no map is shown
    window.action("fuse-staple")->trigger();
    QVERIFY(window.done());
    QVERIFY2(meaning->text().contains("one probability"), qPrintable(meaning->text()));
    QVERIFY2(QRegularExpression("^staple gives \\d+ %\\.$").match(said()).hasMatch(), qPrintable(said()));
    window.action("fuse-soft")->trigger();
    QVERIFY(window.done());
    QVERIFY2(said().startsWith("soft gives "), qPrintable(said()));
    QVERIFY(window.closeAtOnce());
  }

  /// A name that is typed without its extension gets it, and before a file of the whole name is replaced a person is asked.
  void saveDialogsAddTheExtension()
  {
    const Folder folder;
    Window window(folder);
    QVERIFY(window.open(WritePhantomList(folder, Volumes())));
    window.action("fuse-staple")->trigger();
    QVERIFY(window.done());
    QStringList asked;
    const auto saveAs = [&](const char* action, const QString& typed, QMessageBox::StandardButton answer = QMessageBox::Yes) {
      asked.clear();
      bool given = false;
      QTimer person; // sits before the screen
      connect(&person, &QTimer::timeout, &person, [&] {
        QWidget* before = QApplication::activeModalWidget();
        if (auto* box = qobject_cast<QMessageBox*>(before))
        {
          asked << box->text();
          box->button(answer)->click();
        }
        else if (auto* dialog = qobject_cast<QFileDialog*>(before))
        {
          if (given)
          {
            dialog->reject(); // asked again: enough
            return;
          }
          given = true;
          dialog->findChild<QLineEdit*>("fileNameEdit")->setText(Path(folder / typed.toStdString()));
          dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Save)->click();
        }
      });
      person.start(50);
      window.action(action)->trigger();
      return given && window.done();
    };
    const auto there = [&](const char* name) { return std::filesystem::exists(folder / name); };
    QVERIFY(saveAs("exportPicture", "pic"));
    QVERIFY2(there("pic.png") && !there("pic"), qPrintable(window.notice()->text()));
    QVERIFY(saveAs("exportPicture", "pic.of.case.1"));
    QVERIFY(there("pic.of.case.1.png"));
    QVERIFY(saveAs("exportPicture", "photo.jpg")); // another that it can write
    QVERIFY(there("photo.jpg"));
    QVERIFY(saveAs("exportAgreement", "table"));
    QVERIFY(there("table.csv") && !there("table"));
    QVERIFY(saveAs("exportOverlay", "map"));
    QVERIFY(there("map.nrrd"));
    QVERIFY(saveAs("exportOverlay", "map.nii.gz"));
    QVERIFY(there("map.nii.gz"));
    QVERIFY(saveAs("exportOverlay", "map.nii"));
    QVERIFY(there("map.nii"));
    QVERIFY(saveAs("exportReport", "page"));
    QVERIFY2(there("page.html"), qPrintable(window.notice()->text()));
    QVERIFY(saveAs("exportReportAnonymous", "nameless"));
    QVERIFY2(there("nameless.html"), qPrintable(window.notice()->text()));
    QVERIFY(rcn::ReadText(folder / "nameless.html").find("Rater 1") != std::string::npos);
    QVERIFY(saveAs("exportSlideAnonymous", "slide.svg"));
    QVERIFY2(there("slide.svg"), qPrintable(window.notice()->text()));
    QVERIFY(rcn::ReadText(folder / "slide.svg").find("Rater 1") != std::string::npos);
    QVERIFY(saveAs("saveAs", "work"));
    QVERIFY2(there("work.rcn.json") && !there("work"), qPrintable(window.notice()->text()));
    QVERIFY(saveAs("saveAs", "other.json"));
    QVERIFY2(there("other.rcn.json") && !there("other.json"), qPrintable(window.notice()->text()));
    QCOMPARE(asked, QStringList());

    // The file that would be replaced is named; "no" leaves it.
    rcn::WriteText(folder / "table.csv", "old");
    QVERIFY(saveAs("exportAgreement", "table", QMessageBox::No));
    QCOMPARE(asked, QStringList(QString("%1 already exists. Replace it?").arg(Path(folder / "table.csv"))));
    QCOMPARE(TextOf(folder / "table.csv"), std::string("old"));
    QVERIFY(saveAs("exportAgreement", "table"));
    QCOMPARE(asked.size(), 1);
    QVERIFY(TextOf(folder / "table.csv") != "old");
    QVERIFY(window.closeAtOnce());
  }

  void badFilesChangeNothing()
  {
    const Folder folder, other;
    PhantomSet small = Volumes();
    small.Size[0] = 24;
    WritePhantoms(other, small);
    rcn::WriteText(other / "notes.txt", "no image");
    rcn::WriteText(other / "cut.rcn.json", "{\"rcn_workspace\": 1, \"cases\"");
    rcn::WriteText(other / "bad.safetensors", "no model");
    rcn::MakeFolder(other / "empty");
    Window window(folder);
    QVERIFY(window.open(WritePhantomList(folder, Volumes())));
    window.scene()->setCursor({ 3, 4, 5 });
    const auto unchanged = [&] {
      const rcn::Session now = window.document()->session();
      return now.Cases.size() == 8 && now.Raters.size() == 3 && now.Current == "c0" && now.Models.empty() &&
        now.FindCase("c0")->Raters.size() == 3 && window.scene()->cursor() == qRcnScene::Voxel{ 3, 4, 5 } &&
        window.scene()->raterCount() == 3 && window.cases()->currentCase() == "c0" && window.windowTitle().startsWith("c0");
    };
    QVERIFY(unchanged());
    for (const std::string& name : { std::string("c1B.nrrd"), std::string("notes.txt"), std::string("empty"),
           std::string("cut.rcn.json"), std::string("bad.safetensors"), std::string("nowhere.nrrd") })
    {
      window.drop({ other / name });
      QVERIFY(window.done());
      QVERIFY2(window.notice()->isError(), name.c_str());
      const QString sentence = window.notice()->text();
      QVERIFY2(sentence.contains(Path(name)) && !sentence.contains('\n'), qPrintable(sentence));
      QVERIFY2(unchanged(), name.c_str());
    }
    // A good one after them is taken, and the sentence goes.
    window.drop({ folder / "c0.nrrd" });
    QVERIFY(window.done());
    QCOMPARE(window.notice()->text(), QString());
    QCOMPARE(window.document()->session().Cases.size(), size_t(9));
    QVERIFY(window.closeAtOnce());
  }

  /// An image that nobody outlined, of one slice: there is nothing to compare, and masks can come later.
  void anImageAloneCanBeOpened()
  {
    const Folder folder;
    WritePhantoms(folder);
    Window window(folder);
    window.drop({ folder / "c0.nrrd" });
    QVERIFY(window.done());
    QVERIFY2(window.windowTitle().startsWith("c0"), qPrintable(window.notice()->text()));
    QCOMPARE(window.scene()->raterCount(), 0);
    QCOMPARE(window.consensus()->raters()->count(), 0);
    QVERIFY(!window.action("compareRaters")->isEnabled() && !window.action("fuse-staple")->isEnabled() &&
      !window.action("predictCase")->isEnabled());
    QVERIFY(window.action("save")->isEnabled());
    window.drop({ folder / "c0A.nrrd", folder / "c0B.nrrd" });
    QVERIFY(window.done());
    QCOMPARE(window.scene()->raterNames(), QStringList({ "c0A", "c0B" }));
    QCOMPARE(window.document()->session().Cases.size(), size_t(1));
    QVERIFY(window.action("compareRaters")->isEnabled());
    QVERIFY(window.closeAtOnce());
  }

  void aBrokenCaseIsNamedAndTheOldOneStays()
  {
    const Folder folder;
    const std::string list = WritePhantomList(folder, Volumes());
    rcn::WriteText(folder / "c3B.nrrd", "broken");
    Window window(folder);
    QVERIFY(window.open(list));
    window.clickCase("c3");
    QVERIFY(window.done());
    QVERIFY(window.notice()->isError());
    QVERIFY(window.notice()->text().contains("c3B.nrrd"));
    QCOMPARE(window.cases()->status("c3"), qRcnCases::Problem);
    QCOMPARE(window.cases()->currentCase(), QString("c0"));
    QVERIFY(window.windowTitle().startsWith("c0"));
    // The last of quick clicks wins.
    window.clickCase("c1");
    window.clickCase("c2");
    window.clickCase("c4");
    QVERIFY(window.done());
    QVERIFY(QTest::qWaitFor([&] { return window.windowTitle().startsWith("c4"); }, Patience));
    QVERIFY(window.closeAtOnce());
  }

  void trainingIsCanceledKeptOrDiscarded()
  {
    const Folder folder;
    Window window(folder, Window::Endless);
    QVERIFY(window.open(WritePhantomList(folder, Volumes())));
    window.training()->findChild<QDoubleSpinBox*>("minutes")->setValue(60);
    QVERIFY(window.beginTraining());
    QVERIFY(!window.training()->findChild<QPushButton*>("train")->isEnabled());
    // Other work goes on beside it.
    window.clickCase("c1");
    QVERIFY(window.done());
    QVERIFY(window.windowTitle().startsWith("c1"));
    QVERIFY(window.jobs()->training()->isRunning());
    QTest::mouseClick(window.training()->monitor()->findChild<QPushButton*>("cancel"), Qt::LeftButton);
    QVERIFY(window.doneTraining());
    QVERIFY(window.training()->monitor()->state() == qRcnTrainingMonitor::Finished ||
      window.training()->monitor()->state() == qRcnTrainingMonitor::Failed);
    QVERIFY(window.document()->session().Models.empty());
    window.tasks()->discardModel();
    // What was thrown away leaves no model behind.
    const QDir models(Path(window.document()->session().File("models", "")));
    QCOMPARE(models.entryList({ "*.log.csv" }, QDir::Files).size(), 0);
    QVERIFY(window.closeAtOnce());
  }

  /// As with the command line; and the correction in the model is the only one.
  void trainingStoresATemperature()
  {
    const Folder folder;
    PhantomSet set;
    set.Validation = 4;
    Window window(folder);
    rcn::TrainingOptions options;
    QVERIFY(options.Recalibrate);
    window.training()->apply(options);
    QVERIFY(options.Recalibrate);
    options.Workspace.Threads = 1;
    options.Net.width = 8;
    options.Net.depth = 2;
    options.Batch = 2;
    options.Rate = 0.01;
    options.Epochs = 8;
    window.setTrainingDefaults(options);
    QVERIFY(window.open(WritePhantomList(folder, set)));
    auto* strategy = window.training()->findChild<QComboBox*>("strategy");
    strategy->setCurrentIndex(strategy->findData("median"));
    QVERIFY(window.trainQuickly());
    const QString verdict = window.training()->monitor()->findChild<QLabel*>("verdict")->text();
    QVERIFY2(verdict.contains("A temperature of ") && verdict.contains("fitted to 4 validation cases"), qPrintable(verdict));
    window.tasks()->keepModel();
    window.action("recalibrate")->trigger();
    QVERIFY(window.done());
    QVERIFY2(window.notice()->isError() &&
        window.notice()->text().startsWith("The predictions of median are corrected already (temperature, fitted to 4 cases)."),
      qPrintable(window.notice()->text()));
    QVERIFY(window.notice()->text().contains("Evaluate the model with its correction"));
    QCOMPARE(window.document()->session().Models.size(), size_t(1));
    QVERIFY(window.document()->session().Predictions.empty()); // nobody waited for them
    QVERIFY(window.closeAtOnce());
  }

  void closingDuringTrainingIsSafe()
  {
    const Folder folder;
    Window window(folder, Window::Endless);
    QVERIFY(window.open(WritePhantomList(folder, Volumes())));
    QVERIFY(window.beginTraining());
    window.clickCase("c1");
    window.close(); // returns at once
    QVERIFY(QTest::qWaitFor([&] { return !window.isVisible(); }, Patience));
    QVERIFY(!window.jobs()->training()->isRunning() && !window.jobs()->work()->isRunning());
    // And when it is simply taken away.
    auto* gone = new Window(folder, Window::Endless);
    QVERIFY(gone->open(folder / "list.json"));
    QVERIFY(gone->beginTraining());
    delete gone;
  }

  void unsavedResultsComeBack()
  {
    const Folder folder;
    {
      Window window(folder);
      QVERIFY(window.open(WritePhantomList(folder, Volumes())));
      QVERIFY(window.trainQuickly());
      window.tasks()->keepModel();
      window.tasks()->predict(false);
      QVERIFY(window.done());
      // The map is in memory: no file of it yet.
      const rcn::Session session = window.document()->session();
      QVERIFY(session.Predictions.size() == 1 && session.Predictions[0].Maps && session.Predictions[0].Probability.empty());
      QVERIFY(!std::filesystem::exists(session.PredictionFolder("ordinal")));
      window.close();
      QVERIFY(window.isVisible()); // asks once, in the bar
      QVERIFY(window.notice()->text().contains("close again"));
      window.close();
      QTRY_VERIFY_WITH_TIMEOUT(!window.isVisible(), Patience);
      QVERIFY(std::filesystem::exists(session.PredictionFolder("ordinal")));
    }
    Window window(folder);
    window.action("reopen")->trigger();
    QVERIFY(window.done());
    QCOMPARE(window.document()->session().Model, std::string("ordinal"));
    QCOMPARE(window.scene()->predictionCount(), 1);
    QCOMPARE(window.cases()->status("c0"), qRcnCases::Predicted);
    window.tasks()->predict(false);
    QVERIFY(window.done());
    QVERIFY2(!window.notice()->isError(), qPrintable(window.notice()->text()));
    QCOMPARE(window.consensus()->layers()->currentText(), QString("ordinal"));
    QVERIFY(window.closeAtOnce());
  }

  /// Another list in the place of unsaved results: they are written before they go.
  void openingAnotherKeepsUnsavedResults()
  {
    const Folder folder;
    const std::string list = WritePhantomList(folder, Volumes());
    Window window(folder);
    QVERIFY(window.open(list) && window.trainQuickly());
    window.tasks()->keepModel();
    window.tasks()->predict(false);
    QVERIFY(window.done());
    const std::string before = window.document()->session().Folder;
    QVERIFY(window.open(list));
    QVERIFY(!window.document()->isUnsaved() && window.document()->session().Predictions.empty());
    const rcn::Session kept = rcn::ReadSession(before + ".json");
    QCOMPARE(kept.Predictions.size(), size_t(1));
    QVERIFY(std::filesystem::exists(kept.Predictions[0].Levels));
    QVERIFY(window.closeAtOnce());
  }

  /// Where predictions cannot be kept, the window stays open and says why; closed again, it closes.
  void closingSaysWhatCannotBeKept()
  {
    const Folder folder;
    Window window(folder);
    QVERIFY(window.open(WritePhantomList(folder, Volumes())) && window.trainQuickly());
    window.tasks()->keepModel();
    window.tasks()->predict(false);
    QVERIFY(window.done());
    const std::string place = window.document()->session().File("predictions", "");
    rcn::WriteText(place.substr(0, place.size() - 1), "no folder");
    window.close();
    window.close();
    QTRY_VERIFY_WITH_TIMEOUT(window.notice()->isError(), Patience);
    QVERIFY(window.isVisible() && window.isEnabled());
    QVERIFY2(window.notice()->text().contains("predictions"), qPrintable(window.notice()->text()));
    window.close();
    QVERIFY(!window.isVisible());
  }

  void remembersItsLayoutAndListsItsKeys()
  {
    const Folder folder;
    {
      Window window(folder);
      window.resize(1300, 800);
      window.setPanelName("training");
      QTest::keyClick(&window, Qt::Key_Question);
      QVERIFY(window.shortcuts()->isVisible());
      QStringList texts;
      for (const QLabel* label : window.shortcuts()->findChildren<QLabel*>())
      {
        texts << label->text();
      }
      QVERIFY(texts.contains("Ctrl+O") && texts.contains("N"));
      QTest::keyClick(window.shortcuts(), Qt::Key_Escape);
      QVERIFY(!window.shortcuts()->isVisible());
      window.close();
    }
    const qRcnMainWindow window({ Path(folder / "settings.ini"), Path(folder / "unsaved") });
    QCOMPARE(window.panelName(), QString("training"));
    QCOMPARE(window.size(), QSize(1300, 800));
  }

  /// Keys of the views, with the focus in a list, on a button, in a box with a number; what is typed into text stays there.
  void keysWorkWhereverTheFocusIs()
  {
    const Folder folder;
    Window window(folder);
    QVERIFY(window.open(WritePhantomList(folder, Volumes())));
    window.tasks()->fuse("staple"); // with a map there are boxes for it
    QVERIFY(window.done());
    QTest::keyClick(&window, Qt::Key_X); // no focus at all
    QVERIFY(!window.scene()->isCrosshairVisible());
    auto* cases = window.cases()->findChild<QTableWidget*>("cases");
    auto* opacity = window.consensus()->controls()->findChild<QSpinBox*>("opacity");
    auto* search = window.cases()->findChild<QLineEdit*>();
    auto* train = window.training()->findChild<QPushButton*>("train");
    QVERIFY(cases && opacity && search && train);
    for (QWidget* widget : { static_cast<QWidget*>(cases), static_cast<QWidget*>(opacity), static_cast<QWidget*>(train) })
    {
      widget->setFocus();
      window.setPanelName(widget == train ? "training" : "consensus");
      widget->setFocus();
      QTRY_COMPARE(QApplication::focusWidget(), widget);
      const bool heat = window.scene()->isHeatMapVisible();
      QTest::keyClick(widget, Qt::Key_H);
      QCOMPARE(window.scene()->isHeatMapVisible(), !heat);
      const int region = window.disputes()->current();
      QTest::keyClick(widget, Qt::Key_N);
      QVERIFY(window.disputes()->current() == region + 1 || window.disputes()->count() == region + 1);
    }
    // Arrows belong to who can use them, and otherwise to the slices; digits likewise.
    const qRcnScene::Voxel at = window.scene()->cursor();
    train->setFocus();
    QTest::keyClick(train, Qt::Key_Up);
    QVERIFY(window.scene()->cursor() != at);
    window.setPanelName("consensus");
    opacity->setFocus();
    const int before = opacity->value();
    const qRcnScene::Voxel there = window.scene()->cursor();
    QTest::keyClick(opacity, Qt::Key_Up);
    QCOMPARE(opacity->value(), before + 1);
    QVERIFY(window.scene()->cursor() == there);
    QTest::keyClick(opacity, Qt::Key_1);
    QVERIFY(window.scene()->isRaterVisible(0));
    cases->setFocus();
    QTest::keyClick(cases, Qt::Key_1);
    QVERIFY(!window.scene()->isRaterVisible(0));
    search->setFocus();
    const bool heat = window.scene()->isHeatMapVisible();
    QTest::keyClicks(search, "hn1");
    QCOMPARE(search->text(), QString("hn1"));
    QCOMPARE(window.scene()->isHeatMapVisible(), heat);
    search->clear();
    // The view that was used last is the one that scrolls.
    auto* coronal = window.slices()->view(RCN_VIEW_CORONAL)->canvas();
    coronal->setFocus();
    cases->setFocus();
    window.scene()->setCursor({ 20, 16, 3 });
    train->setFocus();
    window.setPanelName("training");
    train->setFocus();
    QTest::keyClick(train, Qt::Key_PageUp);
    QVERIFY(window.scene()->cursor()[1] != 16);
    QCOMPARE(window.scene()->cursor()[2], int64_t(3));
    QVERIFY(window.closeAtOnce());
  }

  /// The structure that is chosen decides what everything is about; others are outlined in their color as long as their eye is
  /// open. The choice stays with another case and with the workspace.
  void severalStructures()
  {
    const Folder folder;
    Window window(folder);
    qRcnStructures* structures = window.consensus()->structures();
    QVERIFY(window.open(WritePhantomList(folder, Volumes())));
    QVERIFY(!structures->isVisible() && !window.action("nextStructure")->isEnabled());
    QVERIFY(window.scene()->outlines().empty());
    QVERIFY(window.open(WriteStructureList(folder, Volumes())));
    QVERIFY2(!window.notice()->isError(), qPrintable(window.notice()->text()));
    QVERIFY(structures->isVisible() && window.action("nextStructure")->isEnabled());
    QCOMPARE(structures->list()->count(), 3);
    QCOMPARE(structures->list()->item(2)->text(), QString("Gefäß"));
    QCOMPARE(structures->chosen(), 1);
    QVERIFY(window.windowTitle().startsWith("c0 – left"));
    QCOMPARE(window.scene()->outlines().size(), size_t(2));
    window.tasks()->fuse("staple");
    QVERIFY(window.done());
    const QVector<double> left = window.scene()->levelVolumes();
    const QString table = window.agreementTable();
    const qRcnScene::Voxel at = window.scene()->cursor();
    const rcn::Volume fused = window.scene()->prediction(0).Probability;

    QTest::keyClick(&window, Qt::Key_S);
    QVERIFY(window.done());
    QCOMPARE(window.document()->structure(), 2);
    QCOMPARE(structures->chosen(), 2);
    QVERIFY(window.windowTitle().startsWith("c0 – right"));
    QVERIFY(window.scene()->levelVolumes() != left && window.agreementTable() != table);
    QVERIFY(window.scene()->cursor() == at);
    QVERIFY(window.scene()->prediction(0).Probability.Data() != fused.Data());
    QCOMPARE(window.scene()->shownPrediction(), 0);
    QTest::keyClick(&window, Qt::Key_S, Qt::ShiftModifier);
    QVERIFY(window.done());
    QVERIFY(window.scene()->levelVolumes() == left && window.agreementTable() == table);
    // After the first comes the last; the last of several clicks counts.
    window.document()->goToStructure(-1);
    window.document()->goToStructure(-1);
    QVERIFY(window.done());
    QCOMPARE(window.document()->structure(), 2);
    QVERIFY(!window.notice()->isError());

    // Eyes.
    window.scene()->setShownPrediction(-1);
    window.scene()->setHeatMapVisible(false);
    const qRcnScene::Outline last = window.scene()->outlines().back();
    QVERIFY(last.Color == qRcnStyle::structureColor(3));
    window.document()->setStructureVisible(3, false);
    QCOMPARE(window.scene()->outlines().size(), size_t(1));
    QCOMPARE(structures->list()->item(2)->checkState(), Qt::Unchecked);
    const QColor color = qRcnStyle::structureColor(1);
    const int with = Count(window.slices()->picture(), color);
    window.document()->setStructureVisible(1, false);
    QVERIFY(with > Count(window.slices()->picture(), color) + 20);
    window.document()->setStructureVisible(1, true);

    // Another case, and the workspace.
    window.document()->openCase("c1");
    QVERIFY(window.done());
    QCOMPARE(window.document()->structure(), 2);
    QCOMPARE(window.scene()->outlines().size(), size_t(1));
    window.document()->saveWorkspace(Path(folder / "structures.rcn.json"));
    QVERIFY(window.done());
    QVERIFY(window.open(folder / "list.json"));
    QVERIFY(!structures->isVisible());
    QVERIFY(window.open(folder / "structures.rcn.json"));
    QCOMPARE(window.document()->structure(), 2);
    QCOMPARE(structures->list()->item(2)->checkState(), Qt::Unchecked);
    QVERIFY(window.windowTitle().contains("right"));

    // A slide is of the structure, and says so.
    window.exporter()->slide(Path(folder / "structure.svg"), window.shownSlice());
    QVERIFY(window.done());
    QVERIFY(Path(TextOf(folder / "structure.svg")).contains("c1, right"));
    QVERIFY(window.closeAtOnce());
  }

  /// One model for all of them: its levels of the chosen structure, its outlines of the others, and figures of each.
  void aModelOfSeveralStructures()
  {
    const Folder folder;
    Window window(folder);
    QVERIFY(window.open(WriteStructureList(folder, Volumes())));
    auto* strategy = window.training()->findChild<QComboBox*>("strategy");
    QCOMPARE(strategy->currentData().toString(), QString("dirichlet-multinomial"));
    QVERIFY2(window.trainQuickly(), qPrintable(window.notice()->text()));
    window.tasks()->keepModel();
    window.action("predictCase")->trigger();
    QVERIFY(window.done());
    QVERIFY2(!window.notice()->isError(), qPrintable(window.notice()->text()));
    QCOMPARE(window.scene()->shownPrediction(), 0);
    QCOMPARE(window.scene()->prediction(0).Levels.ChannelCount(), 4);
    const rcn::Volume left = window.scene()->prediction(0).Levels;
    QCOMPARE(window.scene()->outlines().size(), size_t(2));
    QVERIFY(window.scene()->outlines()[0].Map.Data() && window.scene()->outlines()[0].Table.empty());
    window.scene()->setShownPrediction(-1); // the raters' again
    QVERIFY(!window.scene()->outlines()[0].Table.empty());
    window.scene()->setShownPrediction(0);
    QVERIFY(window.scene()->outlines()[0].Table.empty());

    window.action("evaluate")->trigger();
    QVERIFY(window.done());
    QVERIFY2(window.calibration()->diagram()->hasReport(), qPrintable(window.notice()->text()));
    auto* table = window.calibration()->findChild<qRcnTable*>("structureFigures");
    QVERIFY(!table->isHidden());
    QCOMPARE(table->rowCount(), 4);
    QCOMPARE(table->item(3, 0)->text(), QString("Mean"));
    QVERIFY(window.calibration()->findChild<QLabel*>("about")->text().contains(", left on 2 cases"));
    // A row is a structure.
    QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualItemRect(table->item(1, 0)).center());
    QVERIFY(window.done());
    QCOMPARE(window.document()->structure(), 2);
    QVERIFY(window.calibration()->findChild<QLabel*>("about")->text().contains(", right on 2 cases"));
    QVERIFY(window.scene()->prediction(0).Levels.Data() != left.Data());
    QVERIFY(window.scene()->outlines()[0].Color == qRcnStyle::structureColor(1));
    window.exporter()->reliability(Path(folder / "right.svg"));
    QVERIFY(window.done());
    QVERIFY(Path(TextOf(folder / "right.svg")).contains("right"));
    window.exporter()->report(Path(folder / "all.html"));
    QVERIFY(window.done());
    QVERIFY2(!window.notice()->isError(), qPrintable(window.notice()->text()));
    QVERIFY(Path(TextOf(folder / "all.html")).contains("Gefäß"));

    // As it was, from files.
    window.document()->saveWorkspace(Path(folder / "model.rcn.json"));
    QVERIFY(window.done());
    window.document()->closeAll();
    QVERIFY(window.done());
    QVERIFY(table->isHidden());
    QVERIFY(window.open(folder / "model.rcn.json"));
    QVERIFY(window.done()); // evaluating anew
    QVERIFY2(!window.notice()->isError(), qPrintable(window.notice()->text()));
    QCOMPARE(window.document()->structure(), 2);
    QCOMPARE(window.scene()->prediction(0).Levels.ChannelCount(), 4);
    QTRY_COMPARE_WITH_TIMEOUT(table->rowCount(), 4, Patience);
    QVERIFY(window.done());

    // On cases of one structure it says what it is.
    const QString model = Path(window.document()->stored().Models.front().Path);
    QVERIFY(window.open(WritePhantomList(folder, Volumes())));
    QVERIFY2(!window.notice()->isError(), qPrintable(window.notice()->text()));
    QCOMPARE(strategy->currentData().toString(), QString("ordinal"));
    window.document()->openFiles({ model });
    QVERIFY(window.done());
    window.action("predictCase")->trigger();
    QVERIFY(window.done());
    QVERIFY2(window.notice()->isError() && window.notice()->text().contains("was trained on left, right, Gef"),
      qPrintable(window.notice()->text()));
    QVERIFY(window.closeAtOnce());
  }

  /// The shown slice with its legend, without widgets: raters, and the map in front.
  void pictureForASlide()
  {
    const Folder folder;
    Window window(folder);
    QVERIFY(!window.action("exportSlide")->isEnabled());
    QVERIFY(window.open(folder / "nothing.nrrd"));
    QVERIFY(window.open(WritePhantomList(folder, Volumes())));
    QVERIFY(window.action("exportSlide")->isEnabled());
    window.scene()->setCursor({ 20, 16, 2 });
    window.exporter()->slide(Path(folder / "raters.svg"), window.shownSlice());
    QVERIFY(window.done());
    QVERIFY2(!window.notice()->isError(), qPrintable(window.notice()->text()));
    const QString raters = Path(TextOf(folder / "raters.svg"));
    QVERIFY(raters.contains("c0") && raters.contains("slice 3") && raters.contains("not for clinical use"));
    window.tasks()->fuse("staple");
    QVERIFY(window.done());
    QTRY_VERIFY_WITH_TIMEOUT(!std::isnan(window.scene()->volumeAboveThreshold()), Patience);
    window.slices()->setMaximized(RCN_VIEW_CORONAL);
    QCOMPARE(window.shownSlice().axis, 1);
    QCOMPARE(window.shownSlice().index, int64_t(16));
    window.exporter()->slide(Path(folder / "map.svg"), window.shownSlice());
    QVERIFY(window.done());
    const QString map = Path(TextOf(folder / "map.svg"));
    QVERIFY(map.contains("slice 17") && map.contains("staple") && map.contains("at or above 50"));
    window.exporter()->slide(Path(folder / "map.png"), window.shownSlice());
    QVERIFY(window.done());
    if (!window.notice()->isError()) // a build without librsvg says so
    {
      QCOMPARE(QImage(Path(folder / "map.png")).size(), QSize(1920, 1080));
    }
    // An image alone has nothing to explain.
    QVERIFY(window.open(folder / "c1.nrrd"));
    QVERIFY(!window.action("exportSlide")->isEnabled());
    window.exporter()->slide(Path(folder / "alone.svg"), window.shownSlice());
    QVERIFY(!std::filesystem::exists(folder / "alone.svg"));
    QVERIFY(window.closeAtOnce());
  }

  void windowPresets()
  {
    const Folder folder;
    Window window(folder);
    QVERIFY(!window.action("window-lung")->isEnabled());
    QVERIFY(window.open(WritePhantomList(folder, Volumes())));
    const double black = window.scene()->black(), white = window.scene()->white();
    QTest::keyClick(&window, Qt::Key_F3);
    QCOMPARE(window.scene()->black(), -1200.0);
    QCOMPARE(window.scene()->white(), 200.0);
    window.action("window-brain")->trigger();
    QCOMPARE(window.scene()->white() - window.scene()->black(), 100.0);
    QTest::keyClick(&window, Qt::Key_F2);
    QCOMPARE(window.scene()->black(), black);
    QCOMPARE(window.scene()->white(), white);
    QVERIFY(window.closeAtOnce());
  }

  void aboutNamesTheVersion()
  {
    const Folder folder;
    Window window(folder);
    window.action("about")->trigger();
    QVERIFY(window.about()->isVisible());
    for (const char* words : { RCN_VERSION, "Qt 5", "ITK 5", "For research, not for clinical use", "3-D view" })
    {
      const QString text = QString(words).replace("Qt 5", QString("Qt %1").arg(qVersion()));
      QVERIFY2(window.about()->text().contains(text), words);
    }
    QTest::keyClick(window.about(), Qt::Key_Escape);
    QVERIFY(!window.about()->isVisible());
  }

  void recentFiles()
  {
    const Folder folder;
    const std::string list = WritePhantomList(folder, Volumes());
    {
      Window window(folder);
      QVERIFY(!window.recent()->menuAction()->isEnabled());
      QVERIFY(window.open(list));
      window.drop({ folder / "c1.nrrd", folder / "c1A.nrrd" });
      QVERIFY(window.done());
      QVERIFY(window.open(folder / "nothing.json")); // does not open, is not remembered
      window.document()->saveWorkspace(Path(folder / "work & play.rcn.json"));
      QVERIFY(window.done());
      QCOMPARE(window.recent()->entries().size(), 3);
      QVERIFY(window.closeAtOnce());
    }
    Window window(folder);
    QCOMPARE(window.recent()->entries().size(), 3);
    QVERIFY(window.recent()->actions()[0]->text().startsWith("work && play.rcn.json"));
    QVERIFY(window.recent()->actions()[1]->text().startsWith("c1.nrrd and 1 more"));
    window.recent()->actions()[2]->trigger(); // the list
    QVERIFY(window.done());
    QCOMPARE(window.document()->stored().Cases.size(), size_t(8));
    QCOMPARE(window.recent()->entries().first(), QStringList(Path(list))); // the newest now
    QCOMPARE(window.recent()->entries().size(), 3);
    std::filesystem::remove(folder / "c1A.nrrd");
    emit window.recent()->aboutToShow();
    QVERIFY(!window.recent()->actions()[2]->isEnabled());
    for (int i = 0; i < 20; ++i)
    {
      window.recent()->add({ Path(folder / ("x" + std::to_string(i))) });
    }
    QCOMPARE(window.recent()->entries().size(), int(qRcnRecent::Most));
    window.recent()->forget();
    QVERIFY(!window.recent()->menuAction()->isEnabled());
    QVERIFY(window.closeAtOnce());
  }

  /// A case goes, the next one comes; results in memory are asked for once; at last nothing is open.
  void closesCases()
  {
    const Folder folder;
    Window window(folder);
    QVERIFY(window.open(WritePhantomList(folder, Volumes())));
    QCOMPARE(window.document()->stored().Current, std::string("c0"));
    QTest::keyClick(&window, Qt::Key_W, Qt::ControlModifier);
    QVERIFY(window.done());
    QCOMPARE(window.document()->stored().Current, std::string("c1"));
    QCOMPARE(window.document()->stored().Cases.size(), size_t(7));
    QCOMPARE(window.cases()->shownCases().size(), 7);
    QVERIFY(std::filesystem::exists(folder / "c0.nrrd"));
    QVERIFY(window.trainQuickly());
    window.tasks()->keepModel();
    window.tasks()->predict(false);
    QVERIFY(window.done());
    window.action("closeCase")->trigger();
    QVERIFY(window.done());
    QCOMPARE(window.document()->stored().Current, std::string("c1"));
    QVERIFY2(window.notice()->text().contains("close the case again"), qPrintable(window.notice()->text()));
    window.action("closeCase")->trigger();
    QVERIFY(window.done());
    QCOMPARE(window.document()->stored().Current, std::string("c2"));
    QVERIFY(window.document()->stored().Predictions.empty());
    // The last of the list: the one before it.
    window.document()->openCase("c7");
    QVERIFY(window.done());
    window.action("closeCase")->trigger();
    QVERIFY(window.done());
    QCOMPARE(window.document()->stored().Current, std::string("c6"));
    // All: what has been made is kept, and the window is as it was at the start.
    window.tasks()->predict(false);
    QVERIFY(window.done());
    const std::string before = window.document()->stored().Folder;
    window.action("closeAll")->trigger();
    QVERIFY(window.done());
    QVERIFY(window.document()->stored().Cases.empty() && !window.document()->shownCase());
    QVERIFY(window.scene()->isEmpty() && window.disputes()->count() == 0);
    QVERIFY(std::filesystem::exists(before + ".json"));
    QVERIFY(!window.action("closeCase")->isEnabled() && !window.action("closeAll")->isEnabled());
    QVERIFY(window.open(folder / "c1.nrrd")); // and begins anew
    QCOMPARE(window.document()->stored().Cases.size(), size_t(1));
    QTest::keyClick(&window, Qt::Key_W, Qt::ControlModifier);
    QVERIFY(window.scene()->isEmpty());
    QVERIFY(window.closeAtOnce());
  }

  /// What the step-by-step guide names in bold is there, word for word.
  void guideNamesWhatIsThere()
  {
    const Folder folder;
    Window window(folder);
    QStringList there;
    for (const QAction* action : window.findChildren<QAction*>())
    {
      there << action->text();
    }
    for (const QAbstractButton* button : window.findChildren<QAbstractButton*>())
    {
      there << button->text();
    }
    for (const QLabel* label : window.findChildren<QLabel*>())
    {
      there << label->text();
    }
    for (const QComboBox* box : window.findChildren<QComboBox*>())
    {
      for (int i = 0; i < box->count(); ++i)
      {
        there << box->itemText(i);
      }
    }
    const auto* panels = window.findChild<QTabWidget*>("panels");
    for (int i = 0; i < panels->count(); ++i)
    {
      there << panels->tabText(i);
    }
    const QString guide = QString::fromStdString(TextOf(RCN_VIEWER_GUIDE));
    QRegularExpressionMatchIterator bold = QRegularExpression("\\*\\*([^*]+)\\*\\*").globalMatch(guide);
    int named = 0;
    while (bold.hasNext())
    {
      const QString words = bold.next().captured(1).simplified();
      QVERIFY2(words == "bold" || there.contains(words), qPrintable(words));
      ++named;
    }
    QVERIFY(named > 20);
  }

  /// While a model trains and a volume of 256 x 256 x 256 voxels opens.
  void neverBlocksTheGuiThread()
  {
    const Folder folder;
    constexpr int64_t size = Sanitized ? 96 : 256;
    const auto write = [&](const std::string& name, const std::vector<uint8_t>& voxels) {
      std::ofstream(folder / (name + ".raw"), std::ios::binary)
        .write(reinterpret_cast<const char*>(voxels.data()), static_cast<std::streamsize>(voxels.size()));
      std::ofstream(folder / (name + ".mhd"))
        << "ObjectType = Image\nNDims = 3\nDimSize = " << size << ' ' << size << ' ' << size
        << "\nElementSpacing = 1 1 1\nElementType = MET_UCHAR\nElementDataFile = " << name << ".raw\n";
    };
    const int64_t sizes[3] = { size, size, size };
    const double middle = static_cast<double>(size) / 2;
    std::vector<uint8_t> image(static_cast<size_t>(size * size * size));
    for (size_t i = 0; i < image.size(); ++i)
    {
      image[i] = static_cast<uint8_t>((i * 2654435761u) >> 24);
    }
    write("big", image);
    write("big_A", Ball(sizes, middle, middle, middle, middle / 2));
    write("big_B", Ball(sizes, middle + 4, middle, middle, middle / 2));
    write("big_C", Ball(sizes, middle, middle + 9, middle, middle / 3));

    Window window(folder, Window::Endless);
    QVERIFY(window.open(WritePhantomList(folder, Volumes())));
    // The first pictures compile shaders inside the graphics library; that is not what is measured here.
    window.setLayoutName("compare");
    window.grab();
    window.setLayoutName("slices");
    for (const char* panel : { "agreement", "calibration", "training" })
    {
      window.setPanelName(panel);
      window.grab();
    }
    QApplication::processEvents();
    Watchdog* watchdog = static_cast<Watchdog*>(qApp);
    watchdog->forget();
    QVERIFY(window.beginTraining());
    window.drop({ folder / "big.mhd", folder / "big_A.mhd", folder / "big_B.mhd", folder / "big_C.mhd" });
    QVERIFY(window.done());
    QVERIFY2(window.windowTitle().startsWith("big"), qPrintable(window.notice()->text()));
    for (int z = 0; z < 20; ++z)
    {
      window.scene()->setCursor({ size / 2, size / 2 + z, size / 2 - z });
      QApplication::processEvents(); // draws
    }
    window.tasks()->fuse("staple");
    QVERIFY(window.done());
    window.scene()->setThreshold(0.7);
    QTRY_VERIFY_WITH_TIMEOUT(!std::isnan(window.scene()->volumeAboveThreshold()), Patience);
    QVERIFY(window.jobs()->training()->isRunning());
    qInfo("longest event: %.1f ms (%s)", watchdog->Longest, watchdog->Who.constData());
    if (!Sanitized)
    {
      QVERIFY2(watchdog->Longest < 100, qPrintable(QString("%1 ms: %2").arg(watchdog->Longest).arg(QString(watchdog->Who))));
    }
    QVERIFY(window.closeAtOnce());
  }
};

int main(int argc, char** argv)
{
  Watchdog application(argc, argv);
  TestMainWindow test;
  return QTest::qExec(&test, argc, argv);
}
#include "test_qRcnMainWindow.moc"
