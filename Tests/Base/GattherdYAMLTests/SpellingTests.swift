import GattherdYAML
import Testing

@Suite struct SpellingTests {
    @Test(arguments: [
        ("conect_timeout", "connect_timeout"), ("naem", "name"), ("x", nil), ("retian", "retain"), ("NAME", "name"),
        ("", nil),
    ])
    func `the nearest word is suggested`(typed: String, meant: String?) {
        #expect(Spelling.nearest(to: typed, among: ["connect_timeout", "name", "retain"]) == meant)
    }
}
