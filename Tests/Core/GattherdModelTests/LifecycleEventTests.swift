import GattherdModel
import Testing

/// The size of an event after shortening.
@Suite struct LifecycleEventTests {
    @Test(arguments: ["x", "ä", "€", "👩‍🚀", "\u{0301}", "\u{1}"])
    func `a long text is cut at a character boundary and marked`(character: String) throws {
        let text = String(repeating: character, count: 10_000)
        let cut = text.cut(toBytes: 100)
        #expect(cut.utf8.count <= 100 && cut.utf8.count > 80)
        #expect(cut.hasSuffix("…") && !cut.contains("\u{FFFD}"))
        #expect(text.utf8.starts(with: cut.dropLast().utf8))
    }

    @Test func `a text within the limit is unchanged`() {
        #expect("straße".cut(toBytes: 7) == "straße")
        #expect("straße".cut(toBytes: 6) == "str…")
        #expect("abc".cut(toBytes: 0) == "…")
    }

    @Test func `the details of an event are bounded`() {
        let text = SampleValue.text(String(repeating: "\u{1}", count: 1_000_000))
        let event = LifecycleEvent(time: Timestamp(microseconds: 1), kind: "control", ["value": text, "error": text])
        #expect(event.detail.utf8.count < 8192)
        #expect(event.detail.hasSuffix("…\"}"))
    }
}
