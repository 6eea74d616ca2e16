//! As much of flatbuffers as Arrow's descriptions need. Nothing in a file is believed: what leads outside is absent.

/// A table: fields by their number, each of which may be absent.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
}

fn at<const N: usize>(bytes: &[u8], place: usize) -> Option<[u8; N]> {
    bytes.get(place..place.checked_add(N)?)?.try_into().ok()
}

/// Where the offset at a place leads.
fn follow(bytes: &[u8], place: usize) -> Option<usize> {
    let target = place.checked_add(u32::from_le_bytes(at(bytes, place)?) as usize)?;
    (target < bytes.len()).then_some(target)
}

impl<'a> Table<'a> {
    pub fn root(bytes: &'a [u8]) -> Option<Self> {
        Some(Self {
            bytes,
            at: follow(bytes, 0)?,
        })
    }

    fn field(&self, number: usize) -> Option<usize> {
        let back = i32::from_le_bytes(at(self.bytes, self.at)?);
        let vtable = usize::try_from(i64::try_from(self.at).ok()? - i64::from(back)).ok()?;
        let size = usize::from(u16::from_le_bytes(at(self.bytes, vtable)?));
        let entry = 4 + 2 * number;
        if entry + 2 > size {
            return None;
        }
        let offset = usize::from(u16::from_le_bytes(at(self.bytes, vtable + entry)?));
        (offset > 0).then_some(self.at + offset)
    }

    pub fn u8(&self, number: usize) -> Option<u8> {
        self.bytes.get(self.field(number)?).copied()
    }

    pub fn bool(&self, number: usize) -> bool {
        self.u8(number).is_some_and(|byte| byte != 0)
    }

    pub fn i16(&self, number: usize) -> Option<i16> {
        Some(i16::from_le_bytes(at(self.bytes, self.field(number)?)?))
    }

    pub fn i32(&self, number: usize) -> Option<i32> {
        Some(i32::from_le_bytes(at(self.bytes, self.field(number)?)?))
    }

    pub fn i64(&self, number: usize) -> Option<i64> {
        Some(i64::from_le_bytes(at(self.bytes, self.field(number)?)?))
    }

    pub fn table(&self, number: usize) -> Option<Self> {
        let at = follow(self.bytes, self.field(number)?)?;
        Some(Self {
            bytes: self.bytes,
            at,
        })
    }

    /// The place of the first item of a list, and how many there are.
    fn list(&self, number: usize, item_bytes: usize) -> Option<(usize, usize)> {
        let place = follow(self.bytes, self.field(number)?)?;
        let count = u32::from_le_bytes(at(self.bytes, place)?) as usize;
        let end = count.checked_mul(item_bytes)?.checked_add(place + 4)?;
        (end <= self.bytes.len()).then_some((place + 4, count))
    }

    pub fn text(&self, number: usize) -> Option<String> {
        let (place, count) = self.list(number, 1)?;
        Some(String::from_utf8_lossy(&self.bytes[place..place + count]).into_owned())
    }

    pub fn tables(&self, number: usize) -> Option<Vec<Self>> {
        let (place, count) = self.list(number, 4)?;
        let each = (0..count).map(|index| {
            let at = follow(self.bytes, place + 4 * index)?;
            Some(Self {
                bytes: self.bytes,
                at,
            })
        });
        each.collect()
    }

    /// A list of numbers.
    pub fn longs(&self, number: usize) -> Option<Vec<i64>> {
        let (place, count) = self.list(number, 8)?;
        let each = (0..count).map(|index| Some(i64::from_le_bytes(at(self.bytes, place + 8 * index)?)));
        each.collect()
    }

    /// A list of structs of two numbers.
    pub fn pairs(&self, number: usize) -> Option<Vec<(i64, i64)>> {
        let (place, count) = self.list(number, 16)?;
        let each = (0..count).map(|index| {
            let number =
                |offset: usize| Some(i64::from_le_bytes(at(self.bytes, place + 16 * index + offset)?));
            Some((number(0)?, number(8)?))
        });
        each.collect()
    }
}
