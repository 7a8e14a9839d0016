import GattherdModel
import Testing

@testable import gattherd

@Suite("Text from elsewhere") struct HarmlessTextTests {
    @Test(arguments: ["\u{1B}]0;x\u{7}", "\u{9B}31m", "\r", "\u{7F}", "\u{8}", "\u{202E}", "\u{2066}", "\u{0}"])
    func `What would steer a terminal is replaced, lines and tabs stay`(code: String) {
        let shown = Terminal.harmlessLines("a\tb\n\(code)c 👩‍🚀 ü\n")
        #expect(shown.hasPrefix("a\tb\n\u{FFFD}") && shown.hasSuffix("c 👩‍🚀 ü\n"))
        #expect(!shown.unicodeScalars.contains { code.unicodeScalars.first == $0 })
    }

    @Test func `A text that a spreadsheet would take for a formula is none in CSV, and numbers stay numbers`() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\tx"] {
            #expect(RowPrinter.csv(.text(text)) == "'\(text)")
        }
        #expect(RowPrinter.csv(.text("=HYPERLINK(\"x\",1)")) == "\"'=HYPERLINK(\"\"x\"\",1)\"")
        #expect(RowPrinter.csv(.integer(-5)) == "-5" && RowPrinter.csv(.real(-0.5)) == "-0.5")
        #expect(RowPrinter.csv(.text("on")) == "on")
    }
}
