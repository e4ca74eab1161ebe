//! A typeface: which glyph a character has, how wide it is, and what of it goes into the document.
//!
//! Only glyphs that are used are embedded. Text is laid out left to right, a glyph for each
//! character, without shaping.

use std::collections::BTreeMap;

use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Finish, Name, Pdf, Rect, Ref, Str};
use subsetter::GlyphRemapper;
use ttf_parser::Face;

use super::PdfFault;

/// Shown for a character that the typeface does not have.
const MISSING: char = '\u{25a1}';
const SYSTEM: SystemInfo<'_> = SystemInfo {
    registry: Str(b"Adobe"),
    ordering: Str(b"Identity"),
    supplement: 0,
};

/// A typeface with what was used of it.
pub(super) struct Typeface {
    bytes: &'static [u8],
    face: Face<'static>,
    name: &'static str,
    remap: GlyphRemapper,
    used: BTreeMap<u16, (char, i16)>,
}

/// Text as glyph numbers of the document's part of the typeface.
pub(super) struct Glyphs {
    /// Two bytes each.
    pub(super) bytes: Vec<u8>,
    /// In thousandths of the size.
    pub(super) width: i64,
}

fn small(wide: i64) -> i16 {
    i16::try_from(wide).unwrap_or(i16::MAX)
}

impl Typeface {
    pub(super) fn new(bytes: &'static [u8], name: &'static str) -> Result<Self, PdfFault> {
        Ok(Self {
            bytes,
            face: Face::parse(bytes, 0).map_err(|_broken| PdfFault::Font)?,
            name,
            remap: GlyphRemapper::new(),
            used: BTreeMap::new(),
        })
    }

    /// `units` of the typeface in thousandths of its size.
    fn thousandths(&self, units: i64) -> i64 {
        let em = i64::from(self.face.units_per_em()).max(1);
        units.saturating_mul(1_000).div_euclid(em)
    }

    pub(super) fn glyphs(&mut self, text: &str) -> Glyphs {
        let mut out = Glyphs {
            bytes: Vec::with_capacity(text.len().saturating_mul(2)),
            width: 0,
        };
        for character in text.chars() {
            let shown = if character.is_control() {
                ' '
            } else {
                character
            };
            let found = self.face.glyph_index(shown);
            let Some(glyph) = found.or_else(|| self.face.glyph_index(MISSING)) else {
                continue;
            };
            let advance = i64::from(self.face.glyph_hor_advance(glyph).unwrap_or(0));
            let width = self.thousandths(advance);
            let number = self.remap.remap(glyph.0);
            self.used.entry(number).or_insert((shown, small(width)));
            out.bytes.extend(number.to_be_bytes());
            out.width = out.width.saturating_add(width);
        }
        out
    }

    /// Writes the used part as the font `ids.0`; five ids are used.
    pub(super) fn write(&self, pdf: &mut Pdf, ids: [Ref; 5]) -> Result<(), PdfFault> {
        let [font, cid, descriptor, file, unicode] = ids;
        let part = subsetter::subset(self.bytes, 0, &self.remap).map_err(|_bad| PdfFault::Font)?;
        // Six capital letters before the name mark a part of a font (ISO 32000-1, 9.6.4).
        let name = format!("GPUMKT+{}", self.name);
        let name = Name(name.as_bytes());
        pdf.type0_font(font)
            .base_font(name)
            .encoding_predefined(Name(b"Identity-H"))
            .descendant_font(cid)
            .to_unicode(unicode);
        let mut body = pdf.cid_font(cid);
        body.subtype(CidFontType::Type2)
            .base_font(name)
            .system_info(SYSTEM)
            .font_descriptor(descriptor)
            .default_width(0.0)
            .cid_to_gid_map_predefined(Name(b"Identity"));
        let mut widths = body.widths();
        for (number, (_character, width)) in &self.used {
            widths.consecutive(*number, [(*width).into()]);
        }
        widths.finish();
        body.finish();
        let of = |units: i16| small(self.thousandths(i64::from(units))).into();
        let bounds = self.face.global_bounding_box();
        let bbox = Rect::new(
            of(bounds.x_min),
            of(bounds.y_min),
            of(bounds.x_max),
            of(bounds.y_max),
        );
        let (ascent, descent) = (of(self.face.ascender()), of(self.face.descender()));
        let cap_height = of(self.face.capital_height().unwrap_or(0));
        pdf.font_descriptor(descriptor)
            .name(name)
            .flags(FontFlags::SYMBOLIC)
            .bbox(bbox)
            .italic_angle(0.0)
            .ascent(ascent)
            .descent(descent)
            .cap_height(cap_height)
            .stem_v(80.0)
            .font_file2(file);
        let length = i32::try_from(part.len()).map_err(|_huge| PdfFault::Font)?;
        pdf.stream(file, &part).pair(Name(b"Length1"), length);
        let mut map = UnicodeCmap::new(Name(b"Custom"), SYSTEM);
        for (number, (character, _width)) in &self.used {
            map.pair(*number, *character);
        }
        pdf.cmap(unicode, &map.finish());
        Ok(())
    }
}
