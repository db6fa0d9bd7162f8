/// The viewer as a person uses it: the steps of the tutorial, bad files, closing at a bad moment, and a GUI thread that is
/// never kept busy for long.
#include <QtTest>

#include <ctime>

#include <QAction>
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QDropEvent>
#include <QLabel>
#include <QListWidget>
#include <QMimeData>
#include <QPushButton>
#include <QSignalSpy>
#include <QSurfaceFormat>
#include <QTableWidget>
#include <QToolButton>

#include <QVTKOpenGLNativeWidget.h>
#include <itkObject.h>

#include "qRcnAgreement.h"
#include "qRcnCalibrationPanel.h"
#include "qRcnCases.h"
#include "qRcnCompareView.h"
#include "qRcnConsensusPanel.h"
#include "qRcnDisputes.h"
#include "qRcnMainWindow.h"
#include "qRcnNotice.h"
#include "qRcnReliabilityDiagram.h"
#include "qRcnShortcuts.h"
#include "qRcnSliceViews.h"
#include "qRcnTrainingMonitor.h"
#include "qRcnTrainingPanel.h"
#include "rcnTestData.h"

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
  explicit Window(const Folder& folder)
    : qRcnMainWindow({ Path(folder / "settings.ini"), Path(folder / "unsaved") })
  {
    rcn::TrainingOptions tiny;
    tiny.Workspace.Threads = 1;
    tiny.Net.width = 8;
    tiny.Net.depth = 2;
    tiny.Batch = 2;
    tiny.Rate = 0.01;
    tiny.Epochs = 3;
    this->setTrainingDefaults(tiny);
    this->resize(1500, 950);
    this->show();
    (void)QTest::qWaitForWindowExposed(this);
    QApplication::setActiveWindow(this); // there may be no window manager to do it
  }

  QAction* action(const char* name) { return this->findChild<QAction*>(name); }

  bool done() { return QTest::qWaitFor([this] { return !this->work()->isRunning(); }, Patience); }
  bool doneTraining() { return QTest::qWaitFor([this] { return !this->trainingWork()->isRunning(); }, Patience); }

  bool open(const std::string& path)
  {
    this->openFiles({ Path(path) });
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

  bool trainQuickly()
  {
    this->training()->findChild<QPushButton*>("train")->click();
    return this->doneTraining() && this->training()->monitor()->state() == qRcnTrainingMonitor::Finished;
  }

  /// Another window that closes without a question.
  void closeAtOnce()
  {
    this->close();
    this->close();
  }
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

} // namespace

class TestMainWindow : public QObject
{
  Q_OBJECT
private slots:
  void initTestCase() { itk::Object::GlobalWarningDisplayOff(); }

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
      const rcn::Session now = window.session();
      return now.Cases.size() == 8 && now.Raters.size() == 3 && now.Current == "c0" && now.Models.empty() &&
        now.FindCase("c0")->Raters.size() == 3 && window.scene()->cursor() == qRcnScene::Voxel{ 3, 4, 5 } && window.scene()->raterCount() == 3 &&
        window.cases()->currentCase() == "c0" && window.windowTitle().startsWith("c0");
    };
    QVERIFY(unchanged());
    for (const std::string& name : { std::string("c1B.nrrd"), std::string("notes.txt"), std::string("empty"), std::string("cut.rcn.json"),
           std::string("bad.safetensors"), std::string("nowhere.nrrd") })
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
    QCOMPARE(window.session().Cases.size(), size_t(9));
    window.closeAtOnce();
  }

  void closingDuringTrainingIsSafe()
  {
    const Folder folder;
    Window window(folder);
    rcn::TrainingOptions endless;
    endless.Workspace.Threads = 1;
    endless.Net.width = 8;
    endless.Net.depth = 2;
    endless.Epochs = 1000000;
    window.setTrainingDefaults(endless);
    QVERIFY(window.open(WritePhantomList(folder, Volumes())));
    window.training()->findChild<QPushButton*>("train")->click();
    QTest::qWait(200);
    window.openCase("c1");
    window.close(); // returns at once
    QVERIFY(QTest::qWaitFor([&] { return !window.isVisible(); }, Patience));
    QVERIFY(!window.trainingWork()->isRunning() && !window.work()->isRunning());
    // And when it is simply taken away.
    auto* gone = new Window(folder);
    gone->setTrainingDefaults(endless);
    QVERIFY(gone->open(folder / "list.json"));
    gone->training()->findChild<QPushButton*>("train")->click();
    QTest::qWait(100);
    delete gone;
  }

  void unsavedResultsComeBack()
  {
    const Folder folder;
    {
      Window window(folder);
      QVERIFY(window.open(WritePhantomList(folder, Volumes())));
      QVERIFY(window.trainQuickly());
      window.keepModel();
      window.close();
      QVERIFY(window.isVisible()); // asks once, in the bar
      QVERIFY(window.notice()->text().contains("close again"));
      window.close();
      QVERIFY(!window.isVisible());
    }
    Window window(folder);
    window.action("reopen")->trigger();
    QVERIFY(window.done());
    QCOMPARE(window.session().Model, std::string("rps"));
    window.predict(false);
    QVERIFY(window.done());
    QVERIFY2(!window.notice()->isError(), qPrintable(window.notice()->text()));
    QCOMPARE(window.consensus()->layers()->currentText(), QString("rps"));
    window.closeAtOnce();
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

  /// While a model trains and a volume of 256 x 256 x 256 voxels opens.
  void neverBlocksTheGuiThread()
  {
    const Folder folder;
    constexpr int64_t size = Sanitized ? 96 : 256;
    const auto write = [&](const std::string& name, const std::vector<uint8_t>& voxels) {
      std::ofstream(folder / (name + ".raw"), std::ios::binary).write(reinterpret_cast<const char*>(voxels.data()), static_cast<std::streamsize>(voxels.size()));
      std::ofstream(folder / (name + ".mhd")) << "ObjectType = Image\nNDims = 3\nDimSize = " << size << ' ' << size << ' ' << size
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

    Window window(folder);
    rcn::TrainingOptions endless;
    endless.Workspace.Threads = 1;
    endless.Net.width = 8;
    endless.Net.depth = 2;
    endless.Epochs = 1000000;
    window.setTrainingDefaults(endless);
    QVERIFY(window.open(WritePhantomList(folder, Volumes())));
    // The first pictures compile shaders inside the graphics library; that is not what is measured here.
    window.setLayoutName("compare");
    QTest::qWait(300);
    window.setLayoutName("slices");
    for (const char* panel : { "agreement", "calibration", "training" })
    {
      window.setPanelName(panel);
      QTest::qWait(200);
    }
    Watchdog* watchdog = static_cast<Watchdog*>(qApp);
    watchdog->forget();
    window.training()->findChild<QPushButton*>("train")->click();
    QTest::qWait(500);
    window.drop({ folder / "big.mhd", folder / "big_A.mhd", folder / "big_B.mhd", folder / "big_C.mhd" });
    QVERIFY(window.done());
    QVERIFY2(window.windowTitle().startsWith("big"), qPrintable(window.notice()->text()));
    for (int z = 0; z < 20; ++z)
    {
      window.scene()->setCursor({ size / 2, size / 2 + z, size / 2 - z });
      QTest::qWait(20);
    }
    window.fuse("staple");
    QVERIFY(window.done());
    window.scene()->setThreshold(0.7);
    QTest::qWait(300);
    QVERIFY(window.trainingWork()->isRunning());
    qInfo("longest event: %.1f ms (%s)", watchdog->Longest, watchdog->Who.constData());
    if (!Sanitized)
    {
      QVERIFY2(watchdog->Longest < 100, qPrintable(QString("%1 ms: %2").arg(watchdog->Longest).arg(QString(watchdog->Who))));
    }
    window.closeAtOnce();
    QVERIFY(QTest::qWaitFor([&] { return !window.isVisible(); }, Patience));
  }
};

int main(int argc, char** argv)
{
  QSurfaceFormat::setDefaultFormat(QVTKOpenGLNativeWidget::defaultFormat());
  Watchdog application(argc, argv);
  TestMainWindow test;
  return QTest::qExec(&test, argc, argv);
}
#include "test_qRcnMainWindow.moc"
