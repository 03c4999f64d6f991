TEST 'the two videos with the most actions' BEGIN
  GIVEN interactions (video_id) VALUES (1), (2), (2), (3), (3), (3);
  EXPECT top_videos ORDERED VALUES (3, 3), (2, 2);
  EXPECT top_share (video_id, percent) VALUES (3, 50), (2, 33);
  GIVEN interactions (video_id) VALUES (1), (1), (1);
  EXPECT top_videos ORDERED VALUES (1, 4), (3, 3);
END TEST;
