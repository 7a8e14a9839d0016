import GattherdModel
import GattherdProfiles
import TestKit
import Testing

struct DeclarativeErrorTests {
    @Test(
        arguments: [
            ("{metric: x, typ: u8}", "9:9: a field needs 'type': a type: u8 or i8;"),
            ("{metric: x, type: u8, unti: bpm}", "9:31: a field has no key 'unti'; did you mean 'unit'?"),
            ("{metric: x, type: u17le}", "9:27: 'u17le' is invalid; expected a type"),
            ("{metric: x, type: u16el}", "did you mean 'u16le'?"),
            ("{metric: Heart Rate, type: u8}", "9:18: 'Heart Rate' is invalid; expected a name of a-z, 0-9 and '_'"),
            ("{metric: seq, type: u8}", "9:10: 'seq' is a reserved key; give the metric another name"),
            (
                "{metric: x, flags: x, type: u8}",
                "9:9: a field has exactly one of 'metric', 'flags', 'skip', 'fields', 'objects', 'decrypt', "
            ),
            (
                "{type: u8}",
                "9:9: a field has exactly one of 'metric', 'flags', 'skip', 'fields', 'objects', 'decrypt', "
            ),
            ("[x]", "9:9: a field must be a mapping of keys to values, not a list"),
            ("{flags: f, type: sfloat}", "9:20: 'flags' must be integers of at most 56 bits"),
            ("{flags: f, type: u64}", "9:20: 'flags' must be integers of at most 56 bits"),
            (
                "{metric: x, type: u8, scale: 1/0}",
                "9:38: '1/0' is invalid; expected a number such as 0.01, 1e-3 or 1/1024"
            ),
            ("{metric: x, type: u8, scale: 0}", "9:31: scale and offset must be fractions of less than 53 bits"),
            ("{metric: x, type: u8, scale: 1e-17, offset: 1e-17}", "9:31: scale and offset must be fractions"),
            ("{metric: x, type: u8, scale: many}", "9:38: 'many' is invalid; expected a number"),
            ("{metric: x, type: u8, range: 5}", "9:38: a range is a list of two bounds, such as [0, 100]"),
            ("{metric: x, type: u8, range: [5, 1]}", "9:38: the lower bound comes first"),
            (
                "{flags: r, type: i16le}\n      - {metric: x, from: r, unknown: 0x18000}",
                "10:39: '0x18000' is invalid; expected an integer from -32768 to 65535"
            ),
            ("{metric: x, type: u8, unknown: 256}", "9:40: '256' is invalid; expected an integer from 0 to 255"),
            (
                "{metric: x, type: i8, unknown: -129}",
                "9:40: '-129' is invalid; expected an integer from -128 to 255"
            ),
            (
                "{metric: x, type: u8, kind: gage}",
                "9:37: 'gage' is invalid; expected one of gauge, counter, state, event; did you mean 'gauge'?"
            ),
            (
                "{metric: x, type: u8, enum: [off, on]}",
                "9:37: labels are a mapping of 1 to 256 raw values, such as {0: off, 1: on}"
            ),
            (
                "{metric: x, type: u8, enum: {256: off}}",
                "9:38: '256' is invalid; expected an integer from 0 to 255"
            ),
            ("{metric: x, type: u8, enum: {0: off}, scale: 2}", "'scale' cannot be combined with 'enum'"),
            ("{metric: x, type: utf8, scale: 2}", "9:33: 'scale' has a meaning for numbers only"),
            ("{metric: x, type: u8, length: 2}", "9:31: 'length' is for the types utf8, cstring, utf16"),
            (
                "{metric: x, type: u8, repeat: often}",
                "9:39: 'often': no earlier field is called 'often'; none has a name; expected rest"
            ),
            (
                "{metric: x, type: u8, repeat: 0}",
                "9:39: '0' is invalid; expected rest, a number from 1 to 512, or an earlier field"
            ),
            ("{metric: x, type: utf8, repeat: 2}", "9:33: a repeated text needs a 'length'"),
            ("{metric: x, from: f.1}", "9:27: 'f.1': no earlier field is called 'f'; none has a name"),
            ("{metric: x, from: f.1, type: u8}", "9:21: 'from' cannot be combined with 'type': it consumes no bytes"),
            ("{skip: 0}", "9:16: '0' is invalid; expected a number of bytes from 1 to 512, or an earlier field"),
            ("{metric: x, type: ~}", "9:9: a field needs 'type'"),
            ("{metric: x, type: u8, set: {8: late}}", "9:37: '8' is invalid; expected an integer from 0 to 7"),
            ("{metric: x, type: u8, set: {0: a}, unit: m}", "9:44: 'unit' cannot be combined with 'set'"),
            ("{metric: x, type: f32, enum: {0: a}}", "9:32: 'enum' is for integers"),
            ("{metric: x, type: u8, enum: {1: a, 0x01: b}}", "9:44: 1 has a label already"),
            ("{metric: x, type: u8, wraps: 8}", "9:31: 'wraps' is for 'kind: counter'"),
            (
                "{metric: x, type: u8, kind: counter, wraps: 9}",
                "9:53: '9' is invalid; expected an integer from 1 to 8"
            ),
            ("{metric: x, type: u8, base: 0}", "9:37: '0' is invalid; expected a number above 0, such as 1.1"),
            ("{metric: x, type: sfloat, base: 2}", "9:35: 'base' has no meaning here, although a field may have it"),
            ("{metric: x, type: u8, over: x}", "9:31: 'over' has no meaning here, although a field may have it"),
            ("{metric: x, type: u8, still: 3}", "9:31: 'still' has no meaning here, although a field may have it"),
            ("{metric: x, increase: n}", "9:21: no earlier field is called 'n'; none has a name"),
            ("{metric: x, increase: octets}", "9:21: no earlier field is called 'octets'"),
            ("{metric: x, mean: n}", "9:21: no earlier metric is called 'n'; there is none"),
            (
                "{metric: x, from: octets, signed: true}",
                "9:35: only some bits of a field can be signed, such as f[11:0]"
            ),
            ("{metric: x, from: octets, repeat: 2}", "9:35: 'repeat' is for fields that take bytes"),
            ("{flags: f, type: u8, is: 256}", "9:34: '256' is invalid; expected an integer from 0 to 255"),
            ("{flags: f, type: u8, unit: m}", "9:30: 'unit' has no meaning here, although a field may have it"),
            ("{fields: [{metric: x, type: u8}]}", "9:9: a group needs 'when' or 'repeat', or both"),
            ("{when: left, numbered: true, fields: [{skip: 1}]}", "9:22: 'numbered' is for groups with 'repeat'"),
            ("{when: left, fields: [{flags: n, type: u8}], size: n}", "9:54: 'size' is for groups with 'repeat'"),
            ("{when: left, fields: [{when: left, fields: [{skip: 1}]}]}", "9:44: groups cannot be nested"),
            ("{repeat: 2, fields: [{metric: x, type: u8}], size: y}", "9:54: no earlier field is called 'y'"),
            (
                "{repeat: 2, fields: [{repeat: 2, fields: [{metric: x, type: u8}]}]}",
                "9:42: groups cannot be nested"
            ),
            (
                "{repeat: 2, numbered: true, fields: [{metric: x, type: u8, repeat: 2}]}",
                "9:68: a list cannot be numbered; put the field outside of 'objects' and numbered groups"
            ),
            (
                "{metric: x, type: u8, unknown: {0xFFF: a}}",
                "9:41: '0xFFF' is invalid; expected an integer from 0 to 255"
            ),
            ("{metric: x, type: u8, unit: \"a\\tb\"}", "9:37: 'a\tb' is invalid; expected a text"),
        ]
    )
    func `an error in a field has a position and the expectation`(field: String, error: String) throws {
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: [field]))
        #expect(errors.contains { $0.hasPrefix(error) || (!error.hasPrefix("9:") && $0.contains(error)) })
    }

    @Test(
        arguments: [
            ("g.0", "10:38: 'g.0': no earlier field is called 'g'; there are flags"),
            ("flag.0", "10:38: 'flag.0': no earlier field is called 'flag'; did you mean 'flags'?"),
            ("flags.8", "10:44: 'flags.8': 'flags' has the bits 0 to 7"),
            ("flags.x", "10:44: 'flags.x': expected the number of a bit, as in flags.0"),
            ("flags[0:3]", "10:47: 'flags[0:3]': the highest bit comes first, as in flags[3:0]"),
            ("flags[3]", "10:45: 'flags[3]': expected ':' and the lowest bit, as in flags[3:0]"),
            ("flags = 3", "10:44: 'flags = 3': unexpected '='; write '=='"),
            ("flags.0 flags.1", "10:46: 'flags.0 flags.1': expected the end, or one of & | == != < <= > >="),
            ("(flags.0", "10:46: '(flags.0': expected ')'"),
            ("flags.0 &", "10:47: 'flags.0 &': expected a name, a number or '('"),
            ("!flags == 3", "'!' before a comparison can be read in two ways; put the comparison in parentheses"),
            ("flags + ", "10:46: 'flags + ': expected a name, a number or '('"),
            ("-flags", "10:39: '-flags': expected a number after '-'"),
            ("flags ? 1", "10:44: 'flags ? 1': unexpected '?'"),
            ("flags & 0x0F", "10:46: 'flags & 0x0F': '&' joins conditions; write bits as f[3:0]"),
            ("flags & 0x0F == 3", "10:46: 'flags & 0x0F == 3': '&' joins conditions; write bits as f[3:0]"),
            ("0x0F & flags", "10:38: '0x0F & flags': '&' joins conditions; write bits as f[3:0]"),
            ("flags >> 4", "10:44: 'flags >> 4': there is no '>>'; write the bits 7 to 4 of f as f[7:4]"),
            ("flags << 8", "10:44: 'flags << 8': there is no '<<'; multiply: f*256 shifts f by 8 bits"),
            ("0xZZ == 1", "10:38: '0xZZ == 1': '0xZZ' is not a number"),
            ("flags == 99999999999999999999", "'99999999999999999999' is not a number"),
        ]
    )
    func `an error in a condition has the position of the token`(condition: String, error: String) throws {
        let fields = ["{flags: flags, type: u8}", "{metric: x, type: u8, when: \"\(condition)\"}"]
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: fields))
        #expect(errors.count == 1 && (errors[0].hasPrefix(error) || errors[0].contains(": " + error)))
    }

    @Test func `an error quotes only the beginning of a long text`() throws {
        let field = "{metric: x, type: \(String(repeating: "u", count: 500))}"
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: [field]))
        let beginning = String(repeating: "u", count: 80)
        #expect(errors.count == 1 && errors[0].hasPrefix("9:27: '\(beginning)…' is invalid"))
    }

    @Test func `a record with a wrong number has one error`() throws {
        let text = DeclarativeText.profile(fields: ["{metric: x, type: u8}"], more: "    record: {number: y}")
        #expect(try DeclarativeText.errors(text) == ["10:14: the stream has no metric 'y'"])
    }

    @Test func `a deeply nested condition is refused`() throws {
        for (depth, reason) in [(100, "this is nested too deeply"), (5000, "this is longer than 1000 characters")] {
            let condition = String(repeating: "(", count: depth) + "1" + String(repeating: ")", count: depth)
            let field = "{metric: x, type: u8, when: \"\(condition)\"}"
            let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: [field]))
            #expect(errors.count == 1 && errors[0].hasSuffix(reason))
        }
    }

    @Test(
        arguments: [
            (
                ["{metric: x, type: u8, unit: m}", "{metric: x, type: u8, unit: s}"],
                "10:10: metric 'x' is defined above with another unit, kind, repetition or reset"
            ),
            (
                ["{metric: x, type: u8}", "{metric: x, type: u8}"],
                "10:10: metric 'x' is defined above; give both a 'when', of which only one is true"
            ),
            (
                ["{metric: x, type: u8, when: octets == 1}", "{metric: x, type: u8}"],
                "10:10: metric 'x' is defined above; give both a 'when', of which only one is true"
            ),
            (
                ["{metric: x, type: u8}", "{metric: x, type: u8, when: left > 0}"],
                "10:10: metric 'x' is defined above; give both a 'when', of which only one is true"
            ),
            (
                ["{flags: x, type: u8}", "{metric: x, type: u8}"],
                "10:10: there are flags named 'x' already; rename one of them"
            ),
            (
                ["{metric: x, type: u8}", "{flags: x, type: u8}"],
                "10:10: 'x' is a metric already; give the flags another name"
            ),
            (
                ["{metric: x, type: u8, repeat: rest}", "{metric: y, type: u8}"],
                "10:9: no bytes are left for this field: the one in line 9 consumes the rest"
            ),
            (
                ["{metric: x, type: utf8}", "{skip: 1}"],
                "10:9: no bytes are left for this field: the one in line 9 consumes the rest"
            ),
        ] as [([String], String)]
    )
    func `contradictory fields are reported at the second one`(fields: [String], error: String) throws {
        #expect(try DeclarativeText.errors(DeclarativeText.profile(fields: fields)) == [error])
    }

    @Test(
        arguments: [
            ("", "1:1: the file is empty; a profile starts with 'contract: 1'"),
            ("[]", "1:1: a profile must be a mapping of keys to values, not a list"),
            ("profile: x", "1:1: a profile needs 'contract': the number 1, as in contract: 1"),
            ("contract: 2\nprofile: x", "1:1: it is written for contract 2; this gattherd knows contract 1; update it"),
            ("contract: one", "1:11: 'one' is invalid; expected the number 1, as in contract: 1"),
            ("contract: 1\nprofile: a b", "2:10: 'a b' is invalid; expected a name of a-z, 0-9, '-' and '_'"),
            ("contract: 1\nprofile: a\nservices: 180d", "3:11: 'services' must be a list, not a text"),
            ("contract: 1\nprofile: a\nservices: [180d, 18]", "3:18: '18' is invalid; expected a UUID such as 180d"),
            ("contract: 1\nprofile: a\nservices: [180d]", "1:1: a profile needs 'characteristics'"),
            (
                "contract: 1\nprofile: a\nserivces: [180d]",
                "3:1: a profile has no key 'serivces'; did you mean 'services'?"
            ),
            ("contract: 1\n\tprofile: a", "2:1: "), ("contract: 1\ncontract: 1", "2:1: "),
            ("contract: [1", "2:1: "),
        ]
    )
    func `an error in a profile has a position`(text: String, error: String) throws {
        let errors = try DeclarativeText.errors(text)
        #expect(errors.contains { $0.hasPrefix(error) }, "\(errors)")
    }

    @Test(
        arguments: [
            (
                "subscribe: notfy",
                "5:16: 'notfy' is invalid; expected one of notify, indicate, none; did you mean 'notify'?"
            ),
            ("subscribe: {read: {every: 1ms}}", "5:31: '1ms' is invalid; expected a duration from 100ms to 1d"),
            ("subscribe: {read: {evry: 60s}}", "5:24: 'read' has no key 'evry'; did you mean 'every'?"),
            ("subscribe: {poll: 60s}", "5:16: expected notify, indicate or {read: {every: 60s}}"),
            ("read: {every: 1ms}", "5:19: '1ms' is invalid; expected a duration from 100ms to 1d"),
            ("read: {evry: 1m}", "5:12: 'read' has no key 'evry'; did you mean 'every'?"),
            ("read: yes", "5:11: 'yes' is invalid; expected one of true, false"),
            ("required: true", "5:5: it is neither subscribed nor read; write 'subscribe: notify' or 'read: true'"),
            ("notify: pipe", "5:13: 'pipe' is invalid; expected one of signals, socket"),
            ("length: [5, 2]", "5:13: expected the minimum and maximum length, such as [2, 20]"),
            ("length: five", "5:13: 'five' is invalid; expected exact, a number of bytes, or [minimum, maximum]"),
            ("silence: soon", "5:14: 'soon' is invalid; expected a duration from 1ms to 30d"),
            (
                "stream: availability",
                "5:5: 'availability' is a reserved topic; give the stream another name"
            ),
            ("tests: [{hex: 0}]", "5:13: a test has either 'expect' or 'reject'"),
            ("tests: [{hex: 0, reject: true}]", "5:19: '0' is invalid; expected bytes in hexadecimal"),
            ("tests: [{hex: [], expect: {x: 1}}]", "5:14: 'hex' needs at least one payload"),
            ("tests: [{hex: \"00\", expect: {y: 1}}]", "5:34: the characteristic has no metric 'y'; did you mean 'x'?"),
        ]
    )
    func `an error in a characteristic has a position`(line: String, error: String) throws {
        let text = """
            contract: 1
            profile: thing
            services: [181a]
            characteristics:
              - \(line)
                uuid: 2a6e
                \(line.hasPrefix("stream") ? "" : "stream: thing")
                fields: [{metric: x, type: u8}]
                \(line.hasPrefix("subscribe") || line.hasPrefix("required") ? "" : "subscribe: notify")
            """
        let errors = try DeclarativeText.errors(text)
        #expect(errors.contains { $0.hasPrefix(error) }, "\(errors)")
    }

    @Test(
        arguments: [
            ("{name: x, type: u8}", "11:5: a control needs 'uuid': a UUID such as 180d"),
            (
                "{name: x, uuid: 2a39}",
                "11:5: a control needs 'type': an integer, f32, f64 or bool; or 'trigger': fixed bytes"
            ),
            (
                "{name: x, uuid: 2a39, type: u8, range: [0, 256]}",
                "11:37: the range goes beyond what the type can hold: 0.0 to 255.0"
            ),
            ("{name: x, uuid: 2a39, type: u8, range: [0, 1.5]}", "11:37: the bounds of this range must be integers"),
            ("{name: x, uuid: 2a39, type: f32}", "11:5: a control of this type needs a 'range', such as [0, 1]"),
            (
                "{name: x, uuid: 2a39, type: utf8}",
                "11:27: a control is an integer, f32, f64 or bool, or has an 'enum' or a 'trigger'"
            ),
            (
                "{name: x, uuid: 2a39, trigger: \"01\", range: [0, 1]}",
                "11:42: 'range' cannot be combined with 'trigger'"
            ),
            ("{name: x, uuid: 2a39, trigger: \"1\"}", "11:36: '1' is invalid; expected bytes in hexadecimal"),
            ("{name: x, uuid: 2a39, type: u8, enum: {0: on, 1: on}}", "11:37: two values have the label 'on'"),
            ("{name: x, uuid: 2a39, type: u8, echo: thin}", "11:37: the profile has no stream 'thin'; it has thing"),
            ("{name: x, uuid: 2a39, type: u8, throttle: fast}", "11:47: 'fast' is invalid; expected a duration"),
        ]
    )
    func `an error in a control has a position`(control: String, error: String) throws {
        let text = DeclarativeText.profile(fields: ["{metric: x, type: u8}"], more: "controls:\n  - \(control)")
        let errors = try DeclarativeText.errors(text)
        #expect(errors.contains { $0.hasPrefix(error) }, "\(errors)")
    }

    @Test func `duplicate names are reported`() throws {
        let text = """
            contract: 1
            profile: thing
            services: [181a]
            characteristics:
              - {uuid: 2a6e, stream: a, read: true, fields: [{metric: x, type: u8}]}
              - {uuid: 2a6f, stream: a, read: true, fields: [{metric: x, type: u8}]}
            controls:
              - {name: c, uuid: 2a39, type: u8}
              - {name: c, uuid: 2a39, type: u8}
            """
        #expect(
            try DeclarativeText.errors(text) == [
                "6:18: duplicate stream 'a'; choose another name",
                "9:6: duplicate control 'c'; choose another name",
            ]
        )
    }

    @Test func `all errors are reported, in the order of the text`() throws {
        let fields = ["{metric: x, type: u9}", "{metric: y, type: u8, knd: state}", "{metric: z, type: u8, scale: x}"]
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: fields))
        #expect(errors.map { $0.prefix(3) } == ["9:2", "10:", "11:"])
    }

    @Test func `a wrong field is not reported again by the tests`() throws {
        let tests = "    tests: [{hex: \"00\", expect: {x: 1}}]"
        let text = DeclarativeText.profile(fields: ["{metric: x, type: u9}", "{metric: y, type: u8}"], more: tests)
        #expect(try DeclarativeText.errors(text).count == 1)
    }

    @Test func `a file beyond 1 MiB and one that is not text are refused`() throws {
        let folder = try TemporaryFolder()
        let long = try folder.write(String(repeating: "# long\n", count: 200_000), to: "long.yaml")
        #expect(try ProfileRegistry.load(paths: [long]).refusals.map(\.reason) == ["it is longer than 1 MiB"])
    }

    @Test(.timeLimit(.minutes(2)))
    func `a randomly changed text never traps`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("profile.yaml")
        let original = Array(DeclarativeText.profile(fields: Self.variety, more: Self.controls).utf8)
        var generator = SplitMix(state: 7)
        for _ in 0..<500 {
            var octets = original
            for _ in 0...generator.next() % 4 {
                let position = Int(generator.next() % UInt64(octets.count))
                octets[position] = Self.alphabet[Int(generator.next() % UInt64(Self.alphabet.count))]
            }
            try folder.write(String(decoding: octets, as: UTF8.self), to: "profile.yaml")
            for profile in try ProfileRegistry.load(paths: [path]).profiles {
                let decoder = profile.makeDecoder()
                for _ in 0..<20 { decoder.tryDecode(generator.payload(atMost: 12)) }
                _ = ProfileTools.runVectors(of: profile)
            }
        }
    }

    private static let alphabet = Array("0189abfxu.,:;[]{}()!&|=<>\"'#-_~ \n\t/".utf8)
    private static let variety = [
        "{repeat: 1, size: n, fields: [{flags: n, type: u8}, {metric: o, type: u8, increase: n, repeat: left - 1}]}",
        "{metric: p, increase: n, over: n, scale: 2.1*1024/60, still: 2}", "{metric: q, mean: o}",
        "{metric: r, type: u8, set: {0: x, 7: y}, unknown: {255: z}}", "{metric: s, type: datetime, when: left > 40}",
        "{flags: f, type: u16le}",
        "{metric: a, type: u8, when: \"f.0 & !(f[3:1] == 2 | f.4)\", unit: m, unknown: [255]}",
        "{metric: b, type: i24be, scale: 5/9, offset: -1.5, range: [-10, 1e3], kind: counter}",
        "{metric: c, from: \"f[7:5]\", enum: {0: x, 1: y}}", "{skip: 2, when: f.9}",
        "{metric: d, type: sfloat, scale: 1e-7}",
        "{metric: e, type: u8, repeat: a}", "{metric: g, type: utf8, length: 2, repeat: rest}",
    ]
    private static let controls = """
        controls:
          - {name: c, uuid: 2a39, type: i16be, scale: 0.1, range: [-5, 5], throttle: 1s, echo: thing}
          - {name: d, uuid: 2a39, type: u8, enum: {1: on, 0: off}}
        """
}
