//! The report as its readers meet it: as XML and HTML, as sentences, in a browser.

mod browser;
mod fixtures;
mod pages;
mod sentences;
