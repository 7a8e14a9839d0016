import Testing

@testable import gattherd

/// The text that `gattherd config set` and `config unset` make of an old text and keys.
@Suite struct SectionFileTests {
    private static let header = "# Set by gattherd config set.\n"

    private func text(_ old: String, _ words: [String]) throws -> String {
        let settings = try words.map { word in try KeySetting(word) }
        var file = try SectionFile(Array(old.utf8), of: settings.first?.section ?? "")
        for setting in settings {
            let isApplied = file.apply(setting)
            #expect(isApplied)
        }
        return file.text
    }

    private static let changes: [(old: String, words: [String], new: String)] = [
        ("", ["gateway=attic"], "gateway: attic\n"),
        (header + "gateway: attic\n", ["gateway=lab-1"], "gateway: lab-1\n"),
        ("", ["mqtt.url=mqtt://localhost:1883"], "mqtt:\n  url: 'mqtt://localhost:1883'\n"),
        (
            "mqtt:\n  url: 'mqtt://a'\n  tls: {ca: a.pem}\n  qos: 1\n",
            ["mqtt.tls.key_file=b=c", "mqtt.url=mqtts://b"],
            "mqtt:\n  url: 'mqtts://b'\n  tls:\n    ca: a.pem\n    key_file: 'b=c'\n  qos: 1\n"
        ),
        (
            "history: {keep: {samples: 7d}, path: \"/a b\"}", ["history.max_size=2GiB", "history.keep.events=1y"],
            "history:\n  keep:\n    samples: 7d\n    events: 1y\n  path: '/a b'\n  max_size: '2GiB'\n"
        ),
        ("a: {b: {c: 1, d: 2}, e: 3}\n", ["a.b=off"], "a:\n  b: off\n  e: 3\n"),
        ("a: {b: off, e: 3}\n", ["a.b.c=1"], "a:\n  b:\n    c: 1\n  e: 3\n"),
        ("a:\n", ["a.b=1", "a.b=2"], "a:\n  b: 2\n"), ("a: {}\n", ["a.b=1"], "a:\n  b: 1\n"),
        ("a: {b: , c: {}, d: ~, e: ''}\n", ["a.f=1"], "a:\n  b: null\n  c: {}\n  d: ~\n  e: ''\n  f: 1\n"),
        ("", ["a.b=null", "a.c=-1", "a.d="], "a:\n  b: 'null'\n  c: '-1'\n  d: ''\n"),
        ("", ["a.null=it's"], "a:\n  'null': 'it''s'\n"),
        ("a:\n  b: '${X}'\n  c: ${Y}\n", ["a.d=${Z}"], "a:\n  b: '${X}'\n  c: ${Y}\n  d: '$${Z}'\n"),
        ("a: {b: \"\\x23\"}\n", ["a.c=1"], "a:\n  b: '#'\n  c: 1\n"),
        ("---\na: {b: &x 'p#1', c: q#2}\n", ["a.d=# r"], "a:\n  b: 'p#1'\n  c: q#2\n  d: '# r'\n"),
    ]

    @Test(arguments: changes)
    func `keys are set, and the others stay`(old: String, words: [String], new: String) throws {
        let text = try text(old, words)
        #expect(text == Self.header + new)
        // The command reads what it has written.
        #expect(try self.text(text, words) == text)
    }

    private static let removals: [(old: String, keys: [String], new: String, names: [String])] = [
        ("gateway: attic\n", ["gateway"], "", []),
        ("a: {b: 1, c: 2}\n", ["a.b"], "a:\n  c: 2\n", ["a.c"]),
        ("a: {b: {c: 1, d: 2}, e: '#'}\n", ["a.b"], "a:\n  e: '#'\n", ["a.e"]),
        ("a: {b: {c: 1}, e: 3}\n", ["a.b.c"], "a:\n  e: 3\n", ["a.e"]),
        ("a: {b: {c: 1}, bc: {}}\n", ["a.b.c"], "a:\n  bc: {}\n", ["a.bc"]),
        ("a: {b: {c: 1}}\n", ["a.b.c"], "", []), ("a: {b: 1, c: 2}\n", ["a"], "", []),
        ("a: {}\n", ["a"], "", []), ("a:\n", ["a"], "", []), ("a: {b: 1, c: 2}\n", ["a.c", "a.b"], "", []),
    ]

    @Test(arguments: removals)
    func `keys are removed, and sections without keys`(
        old: String,
        keys: [String],
        new: String,
        names: [String]
    ) throws {
        let settings = try keys.map { key in try KeySetting(removing: key) }
        var file = try SectionFile(Array(old.utf8), of: settings.first?.section ?? "")
        for setting in settings {
            let isRemoved = file.apply(setting)
            #expect(isRemoved)
        }
        #expect(file.text == Self.header + new)
        #expect(file.names == names)
    }

    @Test(arguments: ["a.c", "a.b.c", "b", "a.bb"])
    func `a missing key is not removed`(key: String) throws {
        var file = try SectionFile(Array("a: {b: 1}\n".utf8), of: "a")
        let before = file
        let isRemoved = try file.apply(KeySetting(removing: key))
        #expect(!isRemoved)
        #expect(file == before)
    }

    private static let obstacles: [(old: String, line: Int, reason: String)] = [
        ("# Mine.\na: {b: 1}\n", 1, "a comment would be lost"),
        (header + "a:\n  b: 1 # one\n", 3, "a comment would be lost"),
        (header + header + "a: {b: 1}\n", 2, "a comment would be lost"),
        ("a: {b: 'x'}#y\n", 1, "a comment would be lost"), ("a:\n  b: x\n\u{2028}#y\n", 3, "a comment would be lost"),
        ("a: {b: \"\\x23\"} # c\n", 1, "a comment would be lost"),
        ("a:\n  b: &x 'p#1'\n  c: *x # d\n", 3, "a comment would be lost"),
        ("# Mine.\n", 1, "a comment would be lost"), ("a:\n  b: [1]\n", 2, "this is a list"),
        ("a:\n  b: |\n    x\n    y\n", 2, "this text has several lines"), ("b\n", 1, "this is a text, not a section"),
        ("a: {b: 1}\ndevices: []\n", 2, "the file has another key, 'devices'"),
        ("a:\n  \"b c\": 1\n", 2, "'b c' is not a key"),
    ]

    @Test(arguments: obstacles)
    func `a file with more than scalars of the section stays`(old: String, line: Int, reason: String) {
        let error = #expect(throws: SectionFile.Obstacle.self) { try SectionFile(Array(old.utf8), of: "a") }
        #expect(error == SectionFile.Obstacle(line: line, reason: reason))
    }

    @Test func `a mistake in the old text has its line`() {
        let error = #expect(throws: SectionFile.Obstacle.self) { try SectionFile(Array("a:\n  b: [\n".utf8), of: "a") }
        #expect(error.map { $0.line >= 2 } == true)
    }

    @Test(arguments: [
        "mqtt.url", "=x", "mqtt.=x", "mqtt..url=x", "../x=y", "http.hosts[0]=x", "MQTT.url=x", "a.b=x\ny",
        "a.b=x\u{2028}", "a.b=\u{7}",
    ])
    func `other words are no keys with values`(word: String) {
        #expect(throws: KeySetting.Mistake.self) { try KeySetting(word) }
    }

    @Test(arguments: ["", "mqtt.", "mqtt..url", "mqtt.url=x", "../x", "http.hosts[0]"])
    func `other words are no keys`(word: String) {
        #expect(throws: KeySetting.Mistake.self) { try KeySetting(removing: word) }
    }

    @Test func `a quote before a combining mark stays a quote`() throws {
        let old = Self.header + "mqtt:\n  username: 'a''\u{301} b'\n"
        let new = try text(old, ["mqtt.qos=1"])
        #expect(new.unicodeScalars.elementsEqual((old + "  qos: 1\n").unicodeScalars))
    }
}
