// SPDX-License-Identifier: Apache-2.0
/// The scene: what it keeps alive, what it refuses, what it tells, and the numbers it answers with.
#include <QtTest>

#include <cmath>

#include <QSignalSpy>

#include "rcnSceneTest.h"

using Changes = qRcnScene::Changes;

class TestScene : public QObject
{
  Q_OBJECT
private slots:
  void showsACaseAndNothing()
  {
    qRcnScene scene;
    QVERIFY(scene.isEmpty());
    QVERIFY(std::isnan(scene.volumeAboveThreshold()));
    const TestCase one = MakePhantom(20, 18, 9, 3);
    QSignalSpy spy(&scene, &qRcnScene::changed);
    one.show(scene);
    QCOMPARE(spy.count(), 1);
    QVERIFY(spy[0][0].value<Changes>() & qRcnScene::Case);
    QVERIFY(!scene.isEmpty());
    QCOMPARE(scene.raterCount(), 3);
    QCOMPARE(scene.raterNames(), one.Raters);
    QVERIFY((scene.cursor() == qRcnScene::Voxel{ 10, 9, 4 }));
    QVERIFY(scene.black() < scene.white());
    scene.clear();
    QVERIFY(scene.isEmpty());
    QCOMPARE(scene.raterCount(), 0);
    QCOMPARE(scene.visibleRaters(), uint64_t{ 0 });
    QVERIFY(scene.patternColors().empty());
    scene.setCursor({ 1, 1, 1 });
    scene.setCursorRas({ 1, 1, 1 });
    scene.resetWindow();
  }

  void keepsWhatItShowsAlive()
  {
    qRcnScene scene;
    std::weak_ptr<rcn_votes> votes;
    {
      const TestCase one = MakePhantom(20, 18, 9, 3);
      votes = one.Votes;
      one.show(scene);
    }
    QVERIFY(!votes.expired());
    int component = -2;
    const rcn_image* image = scene.shownImage(&component);
    QCOMPARE(component, 0);
    QVERIFY(image && rcn_image_find_nonfinite(image) == -1); // reads all of it
    scene.clear();
    QVERIFY(votes.expired());
  }

  /// Another structure of the same case: colors and levels are others, the rest stays.
  void otherVotesOfTheSameCase()
  {
    qRcnScene scene;
    const TestCase one = MakePhantom(20, 18, 9, 3), wrong = MakePhantom(20, 18, 9, 2), small = MakePhantom(20, 18, 8, 3);
    const auto other = MakeVotes(one.Geometry,
      { std::vector<uint8_t>(20 * 18 * 9, 1), std::vector<uint8_t>(20 * 18 * 9), std::vector<uint8_t>(20 * 18 * 9) });
    QVERIFY_EXCEPTION_THROWN(scene.setVotes(other), rcn::Error);
    one.show(scene);
    scene.setRaterVisible(1, false);
    scene.setCursor({ 1, 2, 3 });
    scene.setShownPrediction(scene.addPrediction("model", MakeLevels(one)));
    QSignalSpy spy(&scene, &qRcnScene::changed);
    for (const auto& votes : { std::shared_ptr<rcn_votes>(), wrong.Votes, small.Votes })
    {
      QVERIFY_EXCEPTION_THROWN(scene.setVotes(votes), rcn::Error);
    }
    scene.setVotes(one.Votes);
    QCOMPARE(spy.count(), 0);
    scene.setVotes(other);
    QCOMPARE(spy.count(), 1);
    const Changes what = spy[0][0].value<Changes>();
    QVERIFY(what & qRcnScene::Votes && !(what & (qRcnScene::Case | qRcnScene::Cursor | qRcnScene::Image)));
    QVERIFY(scene.levelVolumes()[1] > 0 && scene.levelVolumes()[0] == 0);
    QVERIFY(!scene.isRaterVisible(1) && scene.shownPrediction() == 0);
    QVERIFY((scene.cursor() == qRcnScene::Voxel{ 1, 2, 3 }));
  }

  void outlinesOfOtherThings()
  {
    qRcnScene scene;
    const TestCase one = MakePhantom(20, 18, 9, 3), other = MakePhantom(20, 18, 8, 3);
    one.show(scene);
    const auto patterns = static_cast<size_t>(rcn_votes_pattern_count(one.Votes.get()));
    QSignalSpy spy(&scene, &qRcnScene::changed);
    scene.setOutlines({});
    QVERIFY_EXCEPTION_THROWN(scene.setOutlines({ { Qt::red, std::vector<float>(patterns + 1), rcn::Volume() } }), rcn::Error);
    QVERIFY_EXCEPTION_THROWN(scene.setOutlines({ { Qt::red, {}, MakeLevels(other) } }), rcn::Error);
    QCOMPARE(spy.count(), 0);
    scene.setOutlines({ { Qt::red, std::vector<float>(patterns), rcn::Volume() }, { Qt::blue, {}, MakeLevels(one) } });
    QCOMPARE(spy.count(), 1);
    QVERIFY(spy[0][0].value<Changes>() == qRcnScene::Contours);
    QCOMPARE(scene.outlines().size(), size_t(2));
    one.show(scene);
    QVERIFY(scene.outlines().empty());
  }

  void refusesWhatDoesNotFit()
  {
    qRcnScene scene;
    const TestCase one = MakePhantom(20, 18, 9, 3), other = MakePhantom(20, 18, 8, 2);
    one.show(scene);
    QSignalSpy spy(&scene, &qRcnScene::changed);
    const auto refused = [](const std::function<void()>& action, const char* words) {
      try
      {
        action();
      }
      catch (const rcn::Error& error)
      {
        return QString(error.what()).contains(words);
      }
      return false;
    };
    QVERIFY(refused([&] { scene.setCase(other.Images, one.Votes, one.Geometry, {}); }, "The image has another"));
    QVERIFY(refused([&] { scene.setCase(one.Images, other.Votes, one.Geometry, {}); }, "masks have another"));
    QVERIFY(refused([&] { scene.setCase({}, nullptr, rcn_geometry{}, {}); }, ""));
    QVERIFY(refused([&] { scene.addPrediction("x", MakeLevels(other)); }, "The prediction has another"));
    QVERIFY(refused([&] { scene.addPrediction("x", rcn::Volume()); }, "empty"));
    QVERIFY(refused([&] { scene.addPrediction("x", rcn::Volume::Allocate(one.Geometry, RCN_UINT8)); }, "float32"));
    QCOMPARE(spy.count(), 0);
    QCOMPARE(scene.raterCount(), 3);
    QCOMPARE(scene.predictionCount(), 0);
  }

  void tellsOnlyWhatChanged()
  {
    qRcnScene scene;
    MakePhantom(20, 18, 9, 3).show(scene);
    const auto told = [&scene](const std::function<void()>& action) {
      QSignalSpy spy(&scene, &qRcnScene::changed);
      action();
      action(); // the second time nothing changes
      return spy.count() == 1 ? static_cast<int>(spy[0][0].value<Changes>()) : -spy.count();
    };
    QCOMPARE(told([&] { scene.setCursor({ 3, 4, 5 }); }), int(qRcnScene::Cursor));
    QCOMPARE(told([&] { scene.setCursor({ 99, -4, 5 }); }), int(qRcnScene::Cursor));
    QVERIFY((scene.cursor() == qRcnScene::Voxel{ 19, 0, 5 }));
    QCOMPARE(told([&] { scene.setCrosshairVisible(false); }), int(qRcnScene::Cursor));
    QCOMPARE(told([&] { scene.setWindow(-1, 5); }), int(qRcnScene::Image));
    QCOMPARE(told([&] { scene.setWindow(5, -1); }), 0);
    QCOMPARE(told([&] { scene.setWindow(NAN, 1); }), 0);
    QCOMPARE(scene.white(), 5.0);
    const auto& presets = qRcnScene::windowPresets();
    QCOMPARE(QString(presets.front().Name), QString("lung"));
    QCOMPARE(told([&] { scene.setWindowPreset(presets.front()); }), int(qRcnScene::Image));
    QCOMPARE(scene.black(), -1200.0);
    QCOMPARE(scene.white(), 200.0);
    QCOMPARE(told([&] { scene.setPlace(2, { 1, 2, 3 }); }), int(qRcnScene::Place));
    QCOMPARE(told([&] { scene.setPlace(2, { 1, 2, 3 }); }), 0);
    QCOMPARE(told([&] { scene.resetPlace(); }), int(qRcnScene::Place));
    QCOMPARE(scene.zoom(), 1.0);
    QCOMPARE(told([&] { scene.setRaterVisible(1, false); }), int(qRcnScene::Contours));
    QCOMPARE(scene.visibleRaters(), uint64_t{ 5 });
    QCOMPARE(told([&] { scene.setRaterVisible(7, false); }), 0);
    QCOMPARE(told([&] { scene.setRaterColor(0, Qt::red); }), int(qRcnScene::Contours));
    QCOMPARE(told([&] { scene.setContoursVisible(false); }), int(qRcnScene::Contours));
    QCOMPARE(told([&] { scene.setHeatMapVisible(false); }), int(qRcnScene::Overlay));
    QCOMPARE(told([&] { scene.setHeatMapOpacity(2); }), int(qRcnScene::Overlay));
    QCOMPARE(scene.heatMapOpacity(), 1.0);
    QCOMPARE(told([&] { scene.setIsolatedLevel(2); }), int(qRcnScene::Overlay));
    QCOMPARE(told([&] { scene.setIsolatedLevel(4); }), int(qRcnScene::Overlay));
    QCOMPARE(scene.isolatedLevel(), -1);
    QCOMPARE(told([&] { scene.setHighlight(0.2, 0.3); }), int(qRcnScene::Overlay));
    QCOMPARE(told([&] { scene.setHighlight(-1, -1); }), int(qRcnScene::Overlay));
    QVERIFY(!scene.hasHighlight());
    QCOMPARE(told([&] { scene.setShownPrediction(3); }), 0); // there is none
  }

  void knowsPlaces()
  {
    // x to the right, y to the front, z to the head, turned by 20 degrees about z, in uneven voxels
    TestCase one = MakePhantom(20, 18, 9, 2);
    const double c = std::cos(0.35), s = std::sin(0.35);
    const double direction[9] = { -c, s, 0, -s, -c, 0, 0, 0, 1 };
    std::copy(direction, direction + 9, one.Geometry.direction);
    one.Geometry.spacing[0] = 0.7;
    one.Geometry.spacing[2] = 3;
    one.Geometry.origin[0] = 12;
    one.Geometry.origin[1] = -30;
    qRcnScene scene;
    one.show(scene);
    scene.setCursor({ 4, 11, 6 });
    const auto ras = scene.cursorRas();
    // by hand: LPS = origin + direction * (4 * 0.7, 11, 18); RAS turns the first two
    QVERIFY(std::fabs(ras[0] + (12 - c * 2.8 + s * 11)) < 1e-9);
    QVERIFY(std::fabs(ras[1] + (-30 - s * 2.8 - c * 11)) < 1e-9);
    QVERIFY(std::fabs(ras[2] - 18) < 1e-9);
    scene.setCursor({ 0, 0, 0 });
    scene.setCursorRas({ ras[0] + 0.1, ras[1] - 0.1, ras[2] + 1 });
    QVERIFY((scene.cursor() == qRcnScene::Voxel{ 4, 11, 6 }));
    scene.setCursorRas({ 1e30, NAN, -1e30 });
    QVERIFY(scene.cursor()[2] == 0);
  }

  void countsLevels()
  {
    // rater 0 marks 4 pixels, rater 1 two of them: 2 pixels of level 1, 2 of level 2, 1 mm each
    rcn_geometry geometry = rcn_geometry_make(4, 4, 1);
    std::vector<uint8_t> a(16), b(16);
    std::fill_n(a.begin(), 4, 1);
    std::fill_n(b.begin(), 2, 1);
    qRcnScene scene;
    scene.setCase({}, MakeVotes(geometry, { a, b }), geometry, { "Ada" });
    QCOMPARE(scene.raterNames(), QStringList({ "Ada", "Rater 2" }));
    const QVector<double> volumes = scene.levelVolumes();
    QCOMPARE(volumes.size(), 3);
    QCOMPARE(volumes[0], 12.0);
    QCOMPARE(volumes[1], 2.0);
    QCOMPARE(volumes[2], 2.0);
    QCOMPARE(scene.extentUnit(), QString(" mm\u00b2"));
    geometry.spacing[0] = 0.5;
    scene.setCase({}, MakeVotes(geometry, { a, b }), geometry, { "Ada" });
    QCOMPARE(scene.levelVolumes()[0], 6.0);
    geometry.spacing[0] = 1;
    geometry.unit = RCN_PIXELS;
    scene.setCase({}, MakeVotes(geometry, { a, b }), geometry, { "Ada" });
    QCOMPARE(scene.levelVolumes()[0], 12.0);
    QCOMPARE(scene.extentUnit(), QString(" pixels"));
    int component = 0;
    QVERIFY(scene.shownImage(&component) == nullptr);
  }

  void colorsFollowLevelsAndIsolation()
  {
    qRcnScene scene;
    MakePhantom(20, 18, 9, 3).show(scene);
    scene.setHeatMapOpacity(1);
    const auto alpha = [&scene](size_t pattern) { return int(scene.patternColors()[4 * pattern + 3]); };
    QCOMPARE(alpha(0), 0);
    QCOMPARE(alpha(1), 255);
    QCOMPARE(alpha(7), 255);
    uint8_t all[3];
    rcn_color_palette(all, RCN_PALETTE_GREEN, 1);
    QVERIFY(std::equal(all, all + 3, scene.patternColors().begin() + 28));
    scene.setIsolatedLevel(2);
    QCOMPARE(alpha(7), 0);
    QCOMPARE(alpha(1), 0);
    QCOMPARE(alpha(3), 255);
    QCOMPARE(alpha(5), 255);
    scene.setIsolatedLevel(0); // where nobody marked
    QCOMPARE(alpha(0), 255);
    QCOMPARE(alpha(3), 0);
    scene.setIsolatedLevel(-1);
    scene.setLevelPalette(RCN_PALETTE_GRAY);
    QCOMPARE(scene.patternColors()[28], scene.patternColors()[29]);
  }

  /// Colors go by who answered: with a rater missing, all others together are the top level.
  void levelsGoByWhoAnswered()
  {
    const rcn_geometry geometry = rcn_geometry_make(4, 4, 1);
    const std::vector<uint8_t> mask(16, 1);
    qRcnScene scene;
    scene.setCase({}, MakeVotes(geometry, { mask, mask, std::vector<uint8_t>() }), geometry, { "Ada", "Ben", "Cleo" });
    QVERIFY(!scene.isRaterPresent(2));
    QCOMPARE(scene.levelVolumes().size(), 3);
    QVERIFY(scene.levelVolumes()[2] > 0);
  }

  void measuresVolumes()
  {
    const TestCase one = MakePhantom(40, 38, 20, 4);
    qRcnScene scene;
    one.show(scene);
    QSignalSpy spy(&scene, &qRcnScene::volumeChanged);
    const int number = scene.addPrediction("Model", MakeLevels(one, 0.8));
    QCOMPARE(number, 0);
    QCOMPARE(scene.addPrediction("Model", MakeLevels(one, 0.7)), 0); // replaced
    QCOMPARE(scene.predictionCount(), 1);
    QCOMPARE(spy.count(), 0);                                          // it is not shown yet
    QCOMPARE(scene.readout(), static_cast<int>(RCN_READOUT_EXPECTED)); // the readout that is calibrated
    scene.setReadout(RCN_READOUT_MAJORITY, 0);
    scene.setShownPrediction(0);
    QVERIFY(QTest::qWaitFor([&] { return !std::isnan(scene.volumeAboveThreshold()); }, 10000));
    // the majority readout is above one half where two raters or more marked
    const QVector<double> volumes = scene.levelVolumes();
    const double expected = volumes[2] + volumes[3] + volumes[4];
    QVERIFY(std::fabs(scene.volumeAboveThreshold() - expected) < 1e-9);
    QVERIFY(std::fabs(spy.last()[0].toDouble() - expected) < 1e-9);
    scene.setThreshold(0.99);
    QCOMPARE(scene.volumeAboveThreshold(), 0.0);
    scene.setThreshold(0.5);
    scene.setReadout(RCN_READOUT_AT_LEAST, 4);
    QVERIFY(QTest::qWaitFor([&] { return !std::isnan(scene.volumeAboveThreshold()); }, 10000));
    QVERIFY(std::fabs(scene.volumeAboveThreshold() - volumes[4]) < 1e-9);
    scene.setReadout(RCN_SLICE_LEVEL, 1);
    QVERIFY(QTest::qWaitFor([&] { return !std::isnan(scene.volumeAboveThreshold()); }, 10000));
    QVERIFY(std::fabs(scene.volumeAboveThreshold() - volumes[1]) < 1e-9);
    // asked again before it has answered: the last question counts
    scene.setReadout(RCN_READOUT_AT_LEAST, 1);
    scene.setReadout(RCN_READOUT_AT_LEAST, 2);
    scene.setReadout(RCN_READOUT_AT_LEAST, 3);
    QVERIFY(QTest::qWaitFor([&] { return !std::isnan(scene.volumeAboveThreshold()); }, 10000));
    QVERIFY(std::fabs(scene.volumeAboveThreshold() - volumes[3] - volumes[4]) < 1e-9);
    scene.removePredictions();
    QCOMPARE(scene.shownPrediction(), -1);
    QVERIFY(std::isnan(scene.volumeAboveThreshold()));
  }

  void endsWhileCounting()
  {
    const TestCase one = MakePhantom(64, 64, 40, 4);
    auto scene = std::make_unique<qRcnScene>();
    one.show(*scene);
    scene->addPrediction("Model", MakeLevels(one));
    scene->setShownPrediction(0);
    scene.reset();
    QCoreApplication::processEvents(); // what counting has posted meets no scene
  }
};

QTEST_MAIN(TestScene)
#include "test_qRcnScene.moc"
