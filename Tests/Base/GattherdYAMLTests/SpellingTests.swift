import Testing

@testable import GattherdYAML

@Suite struct SpellingTests {
    @Test(arguments: [
        ("conect_timeout", "connect_timeout"), ("naem", "name"), ("x", nil), ("retian", "retain"), ("NAME", "name"),
        ("", nil),
    ])
    func `the nearest word is suggested`(typed: String, meant: String?) {
        #expect(Spelling.nearest(to: typed, among: ["connect_timeout", "name", "retain"]) == meant)
    }

    @Test func `words of any length are compared by their distance`() {
        for count in 0...12 {
            let word = String("connections!".prefix(count))
            let isNear = Spelling.distance(Array("connect".utf8), Array(word.utf8)) <= 2
            #expect((Spelling.nearest(to: "connect", among: [word]) == word) == isNear, "\(word)")
        }
    }
}
