//! Decoding JPEG at a reduced size against the means of what was encoded.

use flatout_data::formats::image::{ImageDecoder, ImageShape};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use proptest::prelude::*;
use std::path::Path;

#[derive(Debug, Clone, Copy)]
struct Picture {
    width: u16,
    height: u16,
    colour: bool,
    sampling: SamplingFactor,
    restart: u16,
    progressive: bool,
}

/// Smooth slopes with a wave, so that reduced and averaged pictures agree.
fn pixels(picture: Picture) -> Vec<u8> {
    let mut pixels = Vec::new();
    for row in 0..picture.height {
        for column in 0..picture.width {
            let (x, y) = (f32::from(column), f32::from(row));
            let wave = 40.0 * (x / 23.0).sin() * (y / 31.0).cos();
            let channels = [90.0 + wave + x / 8.0, 130.0 - wave, 60.0 + y / 6.0];
            pixels.extend(
                channels[..if picture.colour { 3 } else { 1 }]
                    .iter()
                    .map(|&value| value as u8),
            );
        }
    }
    pixels
}

/// The pixels as `channels` have them.
fn original(picture: Picture, channels: usize) -> Vec<u8> {
    let pixels = pixels(picture);
    let grey = |rgb: &[u8]| {
        let [red, green, blue] = [rgb[0], rgb[1], rgb[2]].map(f32::from);
        (0.299 * red + 0.587 * green + 0.114 * blue) as u8
    };
    match (picture.colour, channels) {
        (true, 1) => pixels.chunks_exact(3).map(grey).collect(),
        (false, 3) => pixels.iter().flat_map(|&value| [value; 3]).collect(),
        _ => pixels,
    }
}

fn encode(picture: Picture) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, 92);
    encoder.set_sampling_factor(picture.sampling);
    encoder.set_progressive(picture.progressive);
    if picture.restart > 0 {
        encoder.set_restart_interval(picture.restart);
    }
    let kind = if picture.colour {
        ColorType::Rgb
    } else {
        ColorType::Luma
    };
    encoder
        .encode(&pixels(picture), picture.width, picture.height, kind)
        .expect("encodes");
    bytes
}

fn decode(bytes: &[u8], height: usize, width: usize, channels: usize) -> flatout_data::Result<Vec<u8>> {
    let shape = ImageShape {
        height,
        width,
        channels,
    };
    let mut into = vec![0; shape.size_bytes()];
    ImageDecoder::default().decode(bytes, shape, Path::new("picture.jpg"), &mut into)?;
    Ok(into)
}

fn arbitrary_picture() -> impl Strategy<Value = Picture> {
    let samplings = [
        SamplingFactor::F_1_1,
        SamplingFactor::F_2_1,
        SamplingFactor::F_1_2,
        SamplingFactor::F_2_2,
    ];
    (
        16u16..150,
        16u16..150,
        any::<bool>(),
        prop::sample::select(samplings.to_vec()),
        0u16..9,
    )
        .prop_map(|(width, height, colour, sampling, restart)| Picture {
            width,
            height,
            colour,
            sampling,
            restart,
            progressive: false,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// At a half, a quarter and an eighth, grey and in colour: close to the means of what was encoded.
    #[test]
    fn reduced_is_like_the_mean_of_the_whole(picture in arbitrary_picture(), divisor in prop::sample::select(vec![2usize, 4, 8]), channels in prop::sample::select(vec![1usize, 3])) {
        let bytes = encode(picture);
        let (height, width) = (usize::from(picture.height), usize::from(picture.width));
        let (small_height, small_width) = (height.div_ceil(divisor), width.div_ceil(divisor));
        let reduced = decode(&bytes, small_height, small_width, channels).unwrap();
        let whole = original(picture, channels);
        let mut sum = 0.0;
        for row in 0..small_height {
            for column in 0..small_width {
                for channel in 0..channels {
                    let (mut mean, mut count) = (0.0, 0.0);
                    for y in row * divisor..((row + 1) * divisor).min(height) {
                        for x in column * divisor..((column + 1) * divisor).min(width) {
                            mean += f64::from(whole[(y * width + x) * channels + channel]);
                            count += 1.0;
                        }
                    }
                    let value = reduced[(row * small_width + column) * channels + channel];
                    sum += (f64::from(value) - mean / count).abs();
                }
            }
        }
        let difference = sum / reduced.len() as f64;
        prop_assert!(difference < 2.0, "{difference} for {picture:?}");
    }

    /// Any damage is an error or a picture, never a panic.
    #[test]
    fn damage_never_panics(picture in arbitrary_picture(), places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), cut in any::<prop::sample::Index>(), cuts: bool) {
        let mut bytes = encode(picture);
        for (place, value) in places {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        let _ = decode(&bytes, 8, 8, 3);
        let _ = decode(&bytes, 4, 4, 1);
    }
}

/// Large enough for the tables that step over several codes at once, with blocks that are full to their last coefficient.
#[test]
fn noise_is_stepped_over_exactly() {
    let (width, height) = (512usize, 320usize);
    let mut stream = flatout_data::random::Stream::new(7, &[]);
    let noise: Vec<u8> = (0..width * height).map(|_| stream.next_u64() as u8).collect();
    for quality in [60, 92, 100] {
        let mut bytes = Vec::new();
        let encoder = Encoder::new(&mut bytes, quality);
        encoder
            .encode(&noise, width as u16, height as u16, ColorType::Luma)
            .unwrap();
        assert!(bytes.len() > 1 << 15);
        let whole = decode(&bytes, height, width, 1).unwrap();
        let reduced = decode(&bytes, height / 8, width / 8, 1).unwrap();
        for (place, &value) in reduced.iter().enumerate() {
            let (row, column) = (place / (width / 8), place % (width / 8));
            let lines = (0..8).map(|line| &whole[(row * 8 + line) * width + column * 8..][..8]);
            let mean = lines.flatten().map(|&pixel| f64::from(pixel)).sum::<f64>() / 64.0;
            // Clipped pixels pull the mean towards the middle: an eighth of the picture does not know of them.
            assert!(
                (f64::from(value) - mean).abs() < 12.0,
                "{quality}: {place} is {value}, not {mean}"
            );
        }
    }
}

#[test]
fn a_truncated_image_is_an_error_at_any_size() {
    let picture = Picture {
        width: 96,
        height: 64,
        colour: true,
        sampling: SamplingFactor::F_2_2,
        restart: 0,
        progressive: false,
    };
    for picture in [
        picture,
        Picture {
            restart: 5,
            ..picture
        },
    ] {
        let bytes = encode(picture);
        for height in [64, 32, 8] {
            let error = decode(&bytes[..bytes.len() * 3 / 4], height, height * 96 / 64, 1).unwrap_err();
            assert!(error.to_string().contains("picture.jpg"), "{error}");
        }
    }
}

#[test]
fn decodes_progressive_images_at_full_size() {
    let picture = Picture {
        width: 64,
        height: 64,
        colour: true,
        sampling: SamplingFactor::F_2_2,
        restart: 0,
        progressive: true,
    };
    let sequential = decode(
        &encode(Picture {
            progressive: false,
            ..picture
        }),
        16,
        16,
        1,
    )
    .unwrap();
    let progressive = decode(&encode(picture), 16, 16, 1).unwrap();
    let furthest = sequential
        .iter()
        .zip(&progressive)
        .map(|(one, other)| one.abs_diff(*other))
        .max();
    assert!(furthest.unwrap() <= 4, "{furthest:?}");
}

#[test]
fn a_size_between_is_reduced_first_and_resized_then() {
    let picture = Picture {
        width: 500,
        height: 375,
        colour: true,
        sampling: SamplingFactor::F_2_2,
        restart: 0,
        progressive: false,
    };
    let reduced = decode(&encode(picture), 128, 128, 3).unwrap();
    // The same picture without the reduced decoder: progressive files have none.
    let whole = decode(
        &encode(Picture {
            progressive: true,
            ..picture
        }),
        128,
        128,
        3,
    )
    .unwrap();
    let sum: f64 = reduced
        .iter()
        .zip(&whole)
        .map(|(one, other)| f64::from(one.abs_diff(*other)))
        .sum();
    assert!(sum / (reduced.len() as f64) < 1.5, "{sum}");
}

/// This encoder writes a scan for each component at this sampling.
#[test]
fn colours_in_scans_of_their_own_are_an_error_and_grey_is_not() {
    let bytes = encode(Picture {
        width: 49,
        height: 49,
        colour: true,
        sampling: SamplingFactor::F_4_1,
        restart: 0,
        progressive: false,
    });
    for size in [49, 25, 7] {
        let error = decode(&bytes, size, size, 3).unwrap_err().to_string();
        assert!(error.contains("scans of their own"), "{error}");
        assert!(decode(&bytes, size, size, 1).is_ok());
    }
}
