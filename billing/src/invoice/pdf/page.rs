//! Pages of A4 and what is put on them.
//!
//! Places and sizes are whole twips (1/20 point) from the upper left corner: integers, so the same
//! document is the same bytes everywhere.

use pdf_writer::{Content, Finish, Name, Pdf, Rect, Ref, Str, TextStr};

use super::PdfFault;
use super::font::Typeface;

/// A4 in twips.
pub(super) const WIDTH: i16 = 11_906;
/// A4 in twips.
pub(super) const HEIGHT: i16 = 16_838;

const REGULAR: &[u8] = include_bytes!("../../../data/fonts/DejaVuSansCondensed.ttf");
const BOLD: &[u8] = include_bytes!("../../../data/fonts/DejaVuSansCondensed-Bold.ttf");

/// How text looks.
#[derive(Clone, Copy)]
pub(super) struct Style {
    /// In twips.
    pub(super) size: i16,
    /// Heavy.
    pub(super) bold: bool,
    /// Grey instead of black.
    pub(super) faint: bool,
}

/// Of this size.
pub(super) const fn plain(size: i16) -> Style {
    Style {
        size,
        bold: false,
        faint: false,
    }
}

/// Heavy, of this size.
pub(super) const fn bold(size: i16) -> Style {
    Style {
        size,
        bold: true,
        faint: false,
    }
}

/// Grey, of this size.
pub(super) const fn faint(size: i16) -> Style {
    Style {
        size,
        bold: false,
        faint: true,
    }
}

/// Pages that are being filled.
pub(super) struct Canvas {
    regular: Typeface,
    bold: Typeface,
    pages: Vec<Content>,
}

/// Whole twips, with what does not fit cut off.
fn twips(wide: i64) -> i16 {
    i16::try_from(wide).unwrap_or(i16::MAX)
}

impl Canvas {
    /// Without a page.
    pub(super) fn new() -> Result<Self, PdfFault> {
        Ok(Self {
            regular: Typeface::new(REGULAR, "DejaVuSansCondensed")?,
            bold: Typeface::new(BOLD, "DejaVuSansCondensed-Bold")?,
            pages: Vec::new(),
        })
    }

    /// Begins a page.
    pub(super) fn turn(&mut self) {
        let mut page = Content::new();
        page.transform([0.05, 0.0, 0.0, 0.05, 0.0, 0.0]);
        self.pages.push(page);
    }

    /// Pages so far.
    pub(super) fn count(&self) -> usize {
        self.pages.len()
    }

    fn face(&mut self, style: Style) -> &mut Typeface {
        if style.bold {
            &mut self.bold
        } else {
            &mut self.regular
        }
    }

    fn width(&mut self, style: Style, text: &str) -> i16 {
        let wide = self.face(style).glyphs(text).width;
        twips(wide.saturating_mul(i64::from(style.size)).div_euclid(1_000))
    }

    /// Puts text on page `page` with its base line at `y`, beginning at `x`.
    pub(super) fn text_on(&mut self, page: usize, (x, y): (i16, i16), style: Style, text: &str) {
        let glyphs = self.face(style).glyphs(text);
        let name = if style.bold { Name(b"B") } else { Name(b"R") };
        let Some(content) = self.pages.get_mut(page) else {
            return;
        };
        content
            .begin_text()
            .set_fill_gray(if style.faint { 0.4 } else { 0.0 })
            .set_font(name, style.size.into())
            .next_line(x.into(), HEIGHT.saturating_sub(y).into())
            .show(Str(&glyphs.bytes))
            .end_text();
    }

    /// Puts text on the last page, beginning at `x`.
    pub(super) fn text(&mut self, at: (i16, i16), style: Style, text: &str) {
        let last = self.count().saturating_sub(1);
        self.text_on(last, at, style, text);
    }

    /// Puts text on the last page, ending at `x`.
    pub(super) fn text_right(&mut self, (x, y): (i16, i16), style: Style, text: &str) {
        let wide = self.width(style, text);
        self.text((x.saturating_sub(wide), y), style, text);
    }

    /// The text, cut to `room` with an ellipsis if it is longer.
    pub(super) fn fitted(&mut self, style: Style, room: i16, text: &str) -> String {
        let (mut kept, mut wide) = (String::new(), 0i16);
        let end = self.width(style, "…");
        let (mut short, mut fits) = (String::new(), true);
        for character in text.chars() {
            wide = wide.saturating_add(self.width(style, character.encode_utf8(&mut [0; 4])));
            if wide > room {
                fits = false;
                break;
            }
            kept.push(character);
            if wide.saturating_add(end) <= room {
                short.clone_from(&kept);
            }
        }
        if fits { kept } else { format!("{short}…") }
    }

    /// The text in lines of at most `room`, broken at blanks.
    pub(super) fn wrapped(&mut self, style: Style, room: i16, text: &str) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut wide = room;
        for word in text.split_whitespace() {
            let word = self.fitted(style, room, word);
            let more = self.width(style, &word);
            let longer = wide
                .saturating_add(self.width(style, " "))
                .saturating_add(more);
            if let Some(line) = lines.last_mut().filter(|_line| longer <= room) {
                line.push(' ');
                line.push_str(&word);
                wide = longer;
            } else {
                lines.push(word);
                wide = more;
            }
        }
        lines
    }

    /// A thin line from `x` to `to` at `y` of the last page.
    pub(super) fn rule(&mut self, (x, y): (i16, i16), to: i16) {
        let Some(content) = self.pages.last_mut() else {
            return;
        };
        let y = HEIGHT.saturating_sub(y);
        content
            .set_line_width(8.0)
            .set_stroke_gray(0.6)
            .move_to(x.into(), y.into())
            .line_to(to.into(), y.into())
            .stroke();
    }

    /// The document.
    pub(super) fn finish(self, title: &str) -> Result<Vec<u8>, PdfFault> {
        let mut pdf = Pdf::new();
        let mut next = Ref::new(1);
        let [catalog, tree, info] = std::array::from_fn(|_any| next.bump());
        let [regular, bold]: [[Ref; 5]; 2] =
            std::array::from_fn(|_any| std::array::from_fn(|_each| next.bump()));
        let sheets: Vec<(Ref, Ref)> = self
            .pages
            .iter()
            .map(|_page| (next.bump(), next.bump()))
            .collect();
        pdf.catalog(catalog).pages(tree).lang(TextStr("en"));
        pdf.document_info(info)
            .title(TextStr(title))
            .producer(TextStr("gpumarket"));
        let count = i32::try_from(sheets.len()).map_err(|_many| PdfFault::TooLong)?;
        pdf.pages(tree)
            .kids(sheets.iter().map(|(page, _content)| *page))
            .count(count);
        for ((page, content), drawn) in sheets.into_iter().zip(self.pages) {
            let mut sheet = pdf.page(page);
            sheet
                .parent(tree)
                .media_box(Rect::new(0.0, 0.0, 595.3, 841.9))
                .contents(content);
            let mut resources = sheet.resources();
            let mut fonts = resources.fonts();
            fonts.pair(Name(b"R"), regular[0]).pair(Name(b"B"), bold[0]);
            fonts.finish();
            resources.finish();
            sheet.finish();
            pdf.stream(content, &drawn.finish());
        }
        self.regular.write(&mut pdf, regular)?;
        self.bold.write(&mut pdf, bold)?;
        Ok(pdf.finish())
    }
}
