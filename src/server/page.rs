//! The page: one file, put together from its parts, and the policy that guards it.
//!
//! | part | content |
//! | --- | --- |
//! | `page.html` | the elements |
//! | `page.css` | the style |
//! | `statements.js` | the statements of each view, as SQL |
//! | `rows.js` | rows, charts and the bars over time |
//! | `document.js` | the text of a document around a hit |
//! | `main.js` | the form, the address and the requests |
//!
//! The page makes elements of texts, never HTML. Should it fail in that, its policy lets the browser run no script but
//! its own, load nothing from elsewhere, and write no HTML from strings. The policy names script and style by their
//! digests, so a part that somebody puts into the page does not run.

use std::sync::LazyLock;

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::IntoResponse;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

const HTML: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    include_str!("page/statements.js"),
    include_str!("page/rows.js"),
    include_str!("page/document.js"),
    include_str!("page/main.js")
);

/// The page.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    let with_style = HTML.replacen("<style></style>", &format!("<style>{STYLE}</style>"), 1);
    with_style.replacen("<script></script>", &format!("<script>{SCRIPT}</script>"), 1)
});

/// Answers a request for the page.
pub async fn page() -> impl IntoResponse {
    static POLICY: LazyLock<HeaderValue> =
        LazyLock::new(|| HeaderValue::try_from(policy()).unwrap_or(HeaderValue::from_static("sandbox")));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, POLICY.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    ];
    (headers, PAGE.as_str())
}

/// Returns the Content-Security-Policy of the page: its one script and its one style, by digest.
fn policy() -> String {
    let digest = |text: &str| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        digest(SCRIPT),
        digest(STYLE)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_one_file_with_one_script_and_one_style() {
        for (element, part) in [("script", SCRIPT), ("style", STYLE)] {
            assert_eq!(PAGE.matches(&format!("<{element}")).count(), 1, "{element}");
            assert!(PAGE.contains(&format!("<{element}>{part}</{element}>")), "{element}");
        }
        for outside in ["src=", "@import", "url(", "innerHTML", "style=", " on"] {
            let found = PAGE.match_indices(outside).any(|(at, _)| {
                outside != " on"
                    || PAGE[at..]
                        .split_once('=')
                        .is_some_and(|(name, _)| name.len() < 14 && name[1..].chars().all(|c| c.is_ascii_lowercase()))
            });
            assert!(!found, "{outside}");
        }
        let policy = policy();
        assert!(HeaderValue::try_from(&policy).is_ok());
        assert_eq!(policy.matches("'sha256-").count(), 2);
        assert!(!policy.contains("unsafe"));
    }
}
