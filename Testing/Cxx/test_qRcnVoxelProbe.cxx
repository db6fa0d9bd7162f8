// SPDX-License-Identifier: Apache-2.0
/// The probe: the sentence for every kind of voxel, and what is drawn.
#include "qRcnTest.h"

#include <QLabel>

#include "qRcnVoxelProbe.h"

class TestVoxelProbe : public QObject
{
  Q_OBJECT

  static qRcnVoxel voxel()
  {
    qRcnVoxel one;
    one.Ras[0] = -12.34;
    one.Ras[1] = 40;
    one.Ras[2] = 7.5;
    one.Index[0] = 31;
    one.Index[1] = 20;
    one.Index[2] = 4;
    one.Image = { 87.25 };
    one.Marked = 0x0b;
    one.Answered = 0x1f;
    one.Map = "rps";
    one.Levels = { 0.1, 0.15, 0.2, 0.25, 0.2, 0.1 };
    return one;
  }

  static QString said(const qRcnVoxelProbe& probe) { return probe.sentence().replace(QChar(0xa0), ' '); }

private slots:
  void initTestCase() { SetUpLook(); }

  void saysItInWords()
  {
    qRcnVoxelProbe probe;
    probe.setRaters(FiveRaters());
    QVERIFY(said(probe).startsWith("Point at the image"));
    qRcnVoxel one = voxel();
    probe.setVoxel(one);
    // .15/5 + .2*2/5 + .25*3/5 + .2*4/5 + .1 = .52
    QCOMPARE(said(probe), QString("3 of 5 raters marked this voxel; rps expects 52 %."));
    QCOMPARE(probe.findChild<QLabel*>("readouts")->text().replace(QChar(0xa0), ' '),
      QString("A majority marks it: 55 %. Any rater: 90 %. All of them: 10 %."));
    const QString place = probe.findChild<QLabel*>("place")->text().replace(QChar(0xa0), ' ');
    QCOMPARE(place, QString("L 12.3  A 40.0  S 7.5 mm\nvoxel 31, 20, 4  ·  image 87.25"));
    QVERIFY(probe.findChild<QWidget*>("bars")->isVisibleTo(&probe));
    one.Levels.clear();
    probe.setVoxel(one);
    QVERIFY(!probe.findChild<QWidget*>("bars")->isVisibleTo(&probe));
    QCOMPARE(said(probe), QString("3 of 5 raters marked this voxel."));
    one.Probability = 0.584;
    one.Map = "staple"; // no model says this
    probe.setVoxel(one);
    QCOMPARE(said(probe), QString("3 of 5 raters marked this voxel; staple gives 58 %."));
    one.Probability = NAN;
    one.Answered = 0x03;
    probe.setVoxel(one);
    QCOMPARE(said(probe), QString("All 2 raters marked this voxel."));
    one.Marked = 0;
    probe.setVoxel(one);
    QCOMPARE(said(probe), QString("None of 2 raters marked this voxel."));
    one.Answered = 0;
    probe.setVoxel(one);
    QCOMPARE(said(probe), QString("No rater answered here."));
    probe.clear();
    QVERIFY(probe.findChild<QLabel*>("place")->text().isEmpty());
  }

  void drawsRatersAndLevels()
  {
    qRcnVoxelProbe probe;
    probe.setRaters(FiveRaters());
    qRcnVoxel one = voxel();
    probe.setVoxel(one);
    const QImage before = PictureOf(probe, QSize(350, 290));
    // The same sentence, but others marked: the dots differ.
    one.Marked = 0x16;
    probe.setVoxel(one);
    QCOMPARE(said(probe).left(6), QString("3 of 5"));
    auto* who = probe.findChild<QWidget*>("who");
    QVERIFY(PictureDifference(before.copy(who->geometry()), PictureOf(probe, QSize(350, 290)).copy(who->geometry())) > 0.02);
    // The same expectation, but another distribution: the bars differ.
    one = voxel();
    one.Levels = { 0.48, 0, 0, 0, 0, 0.52 };
    probe.setVoxel(one);
    auto* bars = probe.findChild<QWidget*>("bars");
    QVERIFY(PictureDifference(before.copy(bars->geometry()), PictureOf(probe, QSize(350, 290)).copy(bars->geometry())) > 0.02);
  }

  void followsTheLegend()
  {
    qRcnVoxelProbe probe;
    probe.setVoxel(voxel());
    const QImage green = PictureOf(probe, QSize(350, 290));
    probe.setLevelPalette(RCN_PALETTE_VIOLET);
    QVERIFY(PictureDifference(green, PictureOf(probe, QSize(350, 290))) > PictureTolerance);
  }

  void picture()
  {
    qRcnVoxelProbe probe;
    probe.setRaters(FiveRaters());
    qRcnVoxel one = voxel();
    one.Answered = 0x0f;
    probe.setVoxel(one);
    COMPARE_PICTURES(probe, "probe", 350, 290);
  }
};

QTEST_MAIN(TestVoxelProbe)
#include "test_qRcnVoxelProbe.moc"
