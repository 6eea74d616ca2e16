//! Arrow messages with what no writer would write in them.

/// What a field of a table contains; a table is its fields by number.
#[derive(Clone)]
pub enum Value<'a> {
    Byte(u8),
    Short(i16),
    Int(i32),
    Long(i64),
    Text(&'a str),
    Pairs(&'a [(i64, i64)]),
    Table(Vec<(usize, Value<'a>)>),
    Tables(Vec<Vec<(usize, Value<'a>)>>),
}
use Value::{Byte, Int, Long, Pairs, Short, Table, Tables, Text};

type Fields<'a> = Vec<(usize, Value<'a>)>;

fn put_offset(out: &mut [u8], place: usize, target: usize) {
    out[place..place + 4].copy_from_slice(&((target - place) as u32).to_le_bytes());
}

/// Writes a table and what it leads to; returns its place.
fn put(out: &mut Vec<u8>, fields: &Fields<'_>) -> usize {
    let vtable = out.len();
    let count = fields.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
    out.extend(((4 + 2 * count) as u16).to_le_bytes());
    out.resize(vtable + 4 + 2 * count, 0);
    let table = out.len();
    out.extend(((table - vtable) as i32).to_le_bytes());
    let mut places = Vec::new();
    for (number, value) in fields {
        let entry = vtable + 4 + 2 * number;
        let offset = ((out.len() - table) as u16).to_le_bytes();
        out[entry..entry + 2].copy_from_slice(&offset);
        places.push(out.len());
        match value {
            Byte(value) => out.push(*value),
            Short(value) => out.extend(value.to_le_bytes()),
            Int(value) => out.extend(value.to_le_bytes()),
            Long(value) => out.extend(value.to_le_bytes()),
            Text(_) | Pairs(_) | Table(_) | Tables(_) => out.extend([0; 4]),
        }
    }
    for ((_, value), place) in fields.iter().zip(places) {
        let target = out.len();
        let length = |count: usize| (count as u32).to_le_bytes();
        match value {
            Text(text) => {
                out.extend(length(text.len()));
                out.extend(text.as_bytes());
            }
            Pairs(pairs) => {
                out.extend(length(pairs.len()));
                out.extend(
                    pairs
                        .iter()
                        .flat_map(|pair| [pair.0, pair.1])
                        .flat_map(i64::to_le_bytes),
                );
            }
            Table(fields) => {
                let target = put(out, fields);
                put_offset(out, place, target);
                continue;
            }
            Tables(tables) => {
                out.extend(length(tables.len()));
                out.resize(target + 4 + 4 * tables.len(), 0);
                for (index, fields) in tables.iter().enumerate() {
                    let own = put(out, fields);
                    put_offset(out, target + 4 + 4 * index, own);
                }
            }
            _ => continue,
        }
        put_offset(out, place, target);
    }
    table
}

fn message(kind: u8, header: Fields<'_>, body: &[u8]) -> Vec<u8> {
    let mut description = vec![0; 4];
    let root = vec![
        (0, Short(4)),
        (1, Byte(kind)),
        (2, Table(header)),
        (3, Long(body.len() as i64)),
    ];
    let place = put(&mut description, &root);
    put_offset(&mut description, 0, place);
    let length = (description.len() as u32).to_le_bytes();
    [&[0xFF; 4], &length[..], &description, body].concat()
}

pub fn null_column(name: &str) -> Fields<'_> {
    vec![(0, Text(name)), (2, Byte(1)), (3, Table(Vec::new()))]
}

pub fn byte_column(name: &str) -> Fields<'_> {
    vec![(0, Text(name)), (2, Byte(2)), (3, Table(vec![(0, Int(8))]))]
}

/// Text, as values of a dictionary if it has a number.
pub fn text_column(name: &str, dictionary: Option<i64>) -> Fields<'_> {
    let mut fields = vec![(0, Text(name)), (2, Byte(5)), (3, Table(Vec::new()))];
    fields.extend(dictionary.map(|id| (4, Table(vec![(0, Long(id))]))));
    fields
}

pub fn schema(columns: &[Fields<'_>]) -> Vec<u8> {
    message(1, vec![(1, Tables(columns.to_vec()))], &[])
}

/// Columns of two buffers each.
pub fn records(rows: i64, buffers: &[&[u8]], codec: Option<u8>) -> Vec<u8> {
    let (places, nodes) = placed(rows, buffers);
    message(3, batch(rows, &places, &nodes, codec), &buffers.concat())
}

/// The same with buffers anywhere in the body.
pub fn records_at(rows: i64, body: &[u8], places: &[(i64, i64)]) -> Vec<u8> {
    let nodes = vec![(rows, 0); places.len() / 2];
    message(3, batch(rows, places, &nodes, None), body)
}

/// One value of a dictionary.
pub fn dictionary(id: i64, grows: bool, text: &[u8]) -> Vec<u8> {
    let offsets = [[0; 4], (text.len() as i32).to_le_bytes()].concat();
    let buffers = [&[], &offsets[..], text];
    let (places, _) = placed(1, &buffers);
    let data = batch(1, &places, &[(1, 0)], None);
    let header = vec![(0, Long(id)), (1, Table(data)), (2, Byte(u8::from(grows)))];
    message(2, header, &buffers.concat())
}

type Places = Vec<(i64, i64)>;

fn placed(rows: i64, buffers: &[&[u8]]) -> (Places, Places) {
    let mut start = 0;
    let places = buffers.iter().map(|buffer| {
        let place = (start, buffer.len() as i64);
        start += place.1;
        place
    });
    (places.collect(), vec![(rows, 0); buffers.len() / 2])
}

fn batch<'a>(rows: i64, places: &'a [(i64, i64)], nodes: &'a [(i64, i64)], codec: Option<u8>) -> Fields<'a> {
    let mut fields = vec![(0, Long(rows)), (1, Pairs(nodes)), (2, Pairs(places))];
    fields.extend(codec.map(|codec| (3, Table(vec![(0, Byte(codec))]))));
    fields
}
