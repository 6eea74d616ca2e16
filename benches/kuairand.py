"""Writes the files of KuaiRand-Pure (https://kuairand.com) with generated contents, at any size, to train on.

    python benches/kuairand.py data/KuaiRand-Pure --rows 1400000
    flatout train --data data/KuaiRand-Pure --epochs 3

Names of files and columns are those of the archive. Clicks depend on the user's activity, the video's tag, the author and the tab;
`is_like` and `long_view` depend on the click. Needs numpy and pandas.
"""

import argparse
import pathlib

import numpy as np
import pandas as pd


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=1_400_000)
    parser.add_argument("--users", type=int, default=27_000)
    parser.add_argument("--videos", type=int, default=7_500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    data = arguments.folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(arguments.seed)
    users, videos = arguments.users, arguments.videos
    activity = random.normal(size=users)
    onehot = {f"onehot_feat{i}": random.integers(0, 2 + 3 * i, users) for i in range(18)}
    follow, fans, friends = (random.integers(0, 500, users) for _ in range(3))
    days = random.integers(1, 2000, users)

    def ranges(values):
        return pd.cut(values, [-1, 0, 10, 50, 100, 250, 10_000]).astype(str)

    pd.DataFrame(
        {
            "user_id": np.arange(users),
            "user_active_degree": np.where(activity > 0, "full_active", "high_active"),
            "is_lowactive_period": 0,
            "is_live_streamer": random.integers(0, 2, users),
            "is_video_author": random.integers(0, 2, users),
            "follow_user_num": follow,
            "follow_user_num_range": ranges(follow),
            "fans_user_num": fans,
            "fans_user_num_range": ranges(fans),
            "friend_user_num": friends,
            "friend_user_num_range": ranges(friends),
            "register_days": days,
            "register_days_range": ranges(days // 4),
            **onehot,
        }
    ).to_csv(data / "user_features_pure.csv", index=False)
    tag, author, quality = random.integers(0, 60, videos), random.integers(0, 2000, videos), random.normal(size=videos)
    author_quality = random.normal(size=2000)
    duration = random.integers(3_000, 120_000, videos)
    pd.DataFrame(
        {
            "video_id": np.arange(videos),
            "author_id": author,
            "video_type": np.where(random.random(videos) < 0.95, "NORMAL", "AD"),
            "upload_dt": "2022-03-01",
            "upload_type": random.choice(["LongImport", "ShortImport", "Web", "Kmovie"], videos),
            "visible_status": 1,
            "video_duration": duration,
            "server_width": 720,
            "server_height": 1280,
            "music_id": random.integers(0, 3000, videos),
            "music_type": random.integers(0, 11, videos),
            "tag": tag,
        }
    ).to_csv(data / "video_features_basic_pure.csv", index=False)
    shown = random.integers(1, 100_000, videos)
    statistic = {"video_id": np.arange(videos), "show_cnt": shown, "play_cnt": (shown * (0.3 + 0.1 * np.tanh(quality))).astype(int)}
    pd.DataFrame(statistic).to_csv(data / "video_features_statistic_pure.csv", index=False)
    interest = random.normal(size=(users, 8)).astype(np.float32)
    topic = random.normal(size=(60, 8)).astype(np.float32)
    names = ["log_standard_4_08_to_4_21_pure", "log_standard_4_22_to_5_08_pure", "log_random_4_22_to_5_08_pure"]
    for part, name in enumerate(names):
        count = arguments.rows // 3 + (arguments.rows % 3 if part == 2 else 0)
        user, video = random.integers(0, users, count), random.integers(0, videos, count)
        tab, hour = random.integers(0, 15, count), random.integers(0, 24, count)
        taste = (interest[user] * topic[tag[video]]).sum(1) / np.sqrt(8)
        score = 0.8 * activity[user] + 0.7 * quality[video] + 0.5 * author_quality[author[video]] + taste + 0.1 * (tab - 7)
        click = (random.random(count) < 1 / (1 + np.exp(-(score - 0.3)))).astype(int)
        liked = (click & (random.random(count) < 0.1)).astype(int)
        long = (click & (random.random(count) < 0.6)).astype(int)
        zeros = np.zeros(count, dtype=int)
        pd.DataFrame(
            {
                "user_id": user,
                "video_id": video,
                "date": 20220408 + part,
                "hourmin": hour * 100,
                "time_ms": 1_649_376_000_000 + (part * arguments.rows + np.arange(count)) * 500,
                "is_click": click,
                "is_like": liked,
                "is_follow": zeros,
                "is_comment": zeros,
                "is_forward": zeros,
                "is_hate": zeros,
                "long_view": long,
                "play_time_ms": click * duration[video] // 2,
                "duration_ms": duration[video],
                "profile_stay_time": zeros,
                "comment_stay_time": zeros,
                "is_profile_enter": zeros,
                "is_rand": int(part == 2),
                "tab": tab,
            }
        ).to_csv(data / f"{name}.csv", index=False)
    print(f"{arguments.rows} rows in {data}")


if __name__ == "__main__":
    main()
