use super::*;
use crate::digest::Digest;
use crate::testing;
use flatout_import::training_log::{EpochTime, Measured};

fn epochs(count: u64) -> Epochs {
    let time = |number| EpochTime {
        number,
        seconds: 20.0 + number as f64,
        measured: Measured::Said,
    };
    Epochs::of((1..=count).map(time).collect()).unwrap()
}

fn size(png: &[u8]) -> (u32, u32) {
    let reader = png::Decoder::new(io::Cursor::new(png)).read_info().unwrap();
    (reader.info().width, reader.info().height)
}

#[test]
fn draws_every_chart() {
    let digest = Digest::of(testing::training(40, 0.6));
    let epochs = epochs(3);
    let picture = Picture {
        title: "轮 gpu.csv".to_owned(),
        charts: &digest.charts,
        length_s: 40.0,
        epochs: vec![("train.log".to_owned(), &epochs)],
    };
    let height = (digest.charts.len() + 1) * HEIGHT + 40;
    assert_eq!(size(&picture.png().unwrap()), (WIDTH as u32, height as u32));
}

#[test]
fn draws_thousands_of_epochs() {
    let epochs = epochs(5000);
    let picture = Picture {
        title: String::new(),
        charts: &[],
        length_s: 0.0,
        epochs: vec![("a".repeat(300), &epochs)],
    };
    assert!(picture.png().unwrap().len() > 500);
    let nothing = Picture {
        title: String::new(),
        charts: &[],
        length_s: 0.0,
        epochs: Vec::new(),
    };
    assert!(nothing.is_empty());
}

#[test]
fn steps_are_whole() {
    assert_eq!([0.13, 0.2, 3.0, 70.0].map(whole_step), [0.2, 0.2, 5.0, 100.0]);
}
