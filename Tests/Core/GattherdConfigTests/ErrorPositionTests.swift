import GattherdConfig
import Testing

@Suite struct ErrorPositionTests {
    /// A text with one error, and the expected message.
    struct Row: CustomTestStringConvertible {
        let text: String
        let expected: String

        init(_ text: String, _ expected: String) {
            self.text = text
            self.expected = expected
        }

        var testDescription: String { text }
    }

    static let device = "devices:\n  - name: a\n    address: C0:FF:EE:00:00:01\n"

    static let structure = [
        Row("gateway: 'x", "1:12+1 syntax"),
        Row("- a", "1:1+3 wrong_kind"),
        Row("gateway: [x]", "1:10+3 wrong_kind"),
        Row("bluetooth: system", "1:12+6 wrong_kind"),
        Row("devices: {name: x}", "1:10+9 wrong_kind"),
        Row("devices:\n  - strap", "2:5+5 wrong_kind"),
        Row("bluetooth:\n  adapters: C0:FF:EE:00:00:01", "2:13+17 wrong_kind"),
        Row("bluetooth:\n  adapters: ${NOTHING}", "2:13+10 undefined_variable"),
        Row("bluetooth: {adapters: []}", "1:13+8 conflict"),
        Row("profiles: {paths: [a, ~]}", "1:23+1 wrong_kind"),
        Row("gatway: x", "1:1+6 unknown_key"),
        Row("bluetooth:\n  conect_timeout: 3s", "2:3+14 unknown_key"),
        Row(device + "    adress: x", "4:5+6 unknown_key"),
        Row("devices:\n  - address: C0:FF:EE:00:00:01", "2:5+26 missing_key"),
        Row("devices:\n  - name: a", "2:5+7 missing_key"),
        Row("mqtt:\n  retain: false", "1:1+4 missing_key"),
        Row("http: {token_file: t}", "1:1+4 missing_key"),
        Row("http: {listen: '0.0.0.0:80'}", "1:16+12 missing_key"),
        Row("mqtt: {url: 'mqtt://a', password_file: p}", "1:25+13 missing_key"),
        Row("enrol:\n  - name: 'a-{address}'", "2:5+19 missing_key"),
        Row("enrol:\n  - name: 'a-{address}'\n    match: {}", "3:5+5 missing_key"),
    ]

    static let values = [
        Row("gateway: Lab 1", "1:10+5 invalid_value"),
        Row("bluetooth: {bus: systm}", "1:18+5 invalid_value"),
        Row("bluetooth: {connect_timeout: 5 parsecs}", "1:30+9 invalid_value"),
        Row("bluetooth: {connect_timeout: 0s}", "1:30+2 invalid_value"),
        Row("bluetooth: {keep_links_on_stop: maybe}", "1:33+5 invalid_value"),
        Row("bluetooth: {adapters: [C0:FF]}", "1:24+5 invalid_value"),
        Row("devices: [{name: Strap, address: C0:FF:EE:00:00:01}]", "1:18+5 invalid_value"),
        Row("devices: [{name: bridge, address: C0:FF:EE:00:00:01}]", "1:18+6 invalid_value"),
        Row("devices: [{name: a, address: C0:FF:EE:00:00}]", "1:30+14 invalid_value"),
        Row(device + "    profiles: [Heart Rate]", "4:16+10 invalid_value"),
        Row(device + "    gateways: [Lab 1]", "4:16+5 invalid_value"),
        Row(device + "    pairing: always", "4:14+6 invalid_value"),
        Row(device + "    on_bond_loss: cry", "4:19+3 invalid_value"),
        Row("history: {commit_interval: 0ms}", "1:28+3 invalid_value"),
        Row("history: {max_size: 2 GiB}", "1:21+5 invalid_value"),
        Row("history: {keep: {samples: never}}", "1:27+5 invalid_value"),
        Row("mqtt: {url: localhost}", "1:13+9 invalid_value"),
        Row("mqtt: {url: 'mqtt://host:port'}", "1:13+18 invalid_value"),
        Row("mqtt: {url: 'mqtt://a', version: 4}", "1:34+1 invalid_value"),
        Row("mqtt: {url: 'mqtt://a', backlog_rate: 0}", "1:39+1 invalid_value"),
        Row("mqtt: {url: 'mqtt://a', max_backlog: 999}", "1:38+3 invalid_value"),
        Row("mqtt: {url: 'mqtt://a', base_topic: 'a/#'}", "1:37+5 invalid_value"),
        Row("mqtt: {url: 'mqtt://a', base_topic: '+/a'}", "1:37+5 invalid_value"),
        Row("mqtt: {url: 'mqtt://a', base_topic: a//b}", "1:37+4 invalid_value"),
        Row("mqtt: {url: 'mqtt://a', base_topic: a/}", "1:37+2 invalid_value"),
        Row("mqtt: {url: 'mqtt://a', base_topic: ''}", "1:37+2 invalid_value"),
        Row("mqtt: {url: 'mqtt://a', base_topic: $SYS/a}", "1:37+6 invalid_value"),
        Row("mqtt: {url: 'mqtt://a', base_topic: 1/2/3/4/5/6/7/8/9}", "1:37+17 invalid_value"),
        Row("mqtt: {url: 'mqtt://a', descriptions: maybe}", "1:39+5 invalid_value"),
        Row("mqtt: {url: 'mqtt://a', home_assistant: {prefix: 'a/#'}}", "1:50+5 invalid_value"),
        Row("http: {listen: 8780}", "1:16+4 invalid_value"),
        Row("http: {listen: '127.0.0.1:80', hosts: ['a:80']}", "1:40+6 invalid_value"),
        Row("log: {level: verbose}", "1:14+7 invalid_value"),
        Row("log: {format: xml}", "1:15+3 invalid_value"),
        Row("enrol: [{match: {service: 18}, name: '{address}'}]", "1:27+2 invalid_value"),
        Row("enrol: [{match: {rssi_at_least: 99}, name: '{address}'}]", "1:33+2 invalid_value"),
        Row("enrol: [{match: {model: 'Govee *'}, name: '{address}'}]", "1:9+46 missing_key"),
        Row("enrol: [{match: {name: a}, name: polar}]", "1:34+5 invalid_value"),
    ]

    private static let home = "mqtt: {url: 'mqtt://a',\n  home_assistant: {\n  statistics: "

    static let rules = [
        Row(device + "  - name: a\n    address: C0:FF:EE:00:00:02", "4:11+1 duplicate"),
        Row(device + "  - name: b\n    address: c0:ff:ee:00:00:01", "5:14+17 duplicate"),
        Row("mqtt: {url: 'mqtt://a', password: secret}", "1:25+8 secret_in_text"),
        Row("mqtt: {url: 'mqtt://me:secret@a'}", "1:13+20 secret_in_text"),
        Row("http: {listen: '127.0.0.1:80', token: t}", "1:32+5 secret_in_text"),
        Row(device + "    pin: 123456", "4:5+3 secret_in_text"),
        Row(device + "    pairing: passkey", "4:14+7 missing_key"),
        Row(device + "    bind_key: '00'", "4:5+8 secret_in_text"),
        Row(device + "    silence: 10", "4:14+2 invalid_value"),
        Row(device + "    silence: {heart_rate: soon}", "4:27+4 invalid_value"),
        Row("bluetooth: {rotate: 1s}", "1:21+2 invalid_value"),
        Row(device + "    pairing: never\n    pin_file: p", "5:5+8 conflict"),
        Row("mqtt: {url: 'mqtt://a', tls: {ca: c}}", "1:25+3 conflict"),
        Row("mqtt: {url: 'mqtt://a', base_topic: homeassistant}", "1:37+13 conflict"),
        Row("mqtt: {url: 'mqtt://a', base_topic: homeassistant/lab}", "1:37+17 conflict"),
        Row("mqtt: {url: 'mqtt://a', base_topic: home, home_assistant: {prefix: home/ha}}", "1:37+4 conflict"),
        Row("mqtt: {url: 'mqtts://a', tls: {key: k}}", "1:32+3 missing_key"),
        Row(home + "{url: 'ws://h', token_file: t}}}", "3:21+8 invalid_value"),
        Row(home + "{url: 'http://u:p@h', token_file: t}}}", "3:21+14 secret_in_text"),
        Row(home + "{url: 'http://h:8123', token: t}}}", "3:3+10 missing_key, 3:38+5 secret_in_text"),
        Row(home + "{url: 'http://h', token_file: t, tls: {ca: c}}}}", "3:48+3 conflict"),
        Row(home + "{url: 'https://h', token_file: t, tls: {key: k}}}}", "3:55+3 missing_key"),
        Row(home + "{url: 'http://h', token_file: t}, discovery: false}}", "3:3+10 conflict"),
        Row("mqtt: {url: 'mqtts://a', tls: {min_version: '1.1'}}", "1:45+5 invalid_value"),
        Row("mqtt: {url: 'mqtts://a', tls: {server_name: 'a:8883'}}", "1:45+8 invalid_value"),
        Row(device + "    publish: {deadband: -1}", "4:25+2 invalid_value"),
        Row(device + "    publish: {deadband: {t: x}}", "4:29+1 invalid_value"),
        Row(device + "    publish: {on_change: false, deadband: 1}", "4:33+8 conflict"),
        Row(device + "    publish: {min_interval: 5s, heartbeat: 1s}", "4:33+9 conflict"),
        Row(device + "    publish: {streams: {s: {on_chang: true}}}", "4:29+8 unknown_key"),
        Row("mqtt: {url: 'mqtt://a', publish: {streams: {s: {qos: 1}}}}", "1:35+7 unknown_key"),
        Row("mqtt: {url: 'mqtt://a', publish: {qos: 2}}", "1:40+1 invalid_value"),
        Row("mqtt: {url: 'mqtt://a', publish: {batch: 1ms}}", "1:42+3 invalid_value"),
        Row("mqtt: {url: 'mqtt://a', publish: {batch: yes}}", "1:42+3 invalid_value"),
        Row("lines: {path: p, name: mqtt}", "1:24+4 invalid_value"),
        Row("lines: {path: p, name: statistics}", "1:24+10 invalid_value"),
        Row("gateway: lab-${NOWHERE}", "1:14+10 undefined_variable"),
        Row("gateway: 'lab-${NOWHERE}'", "1:15+10 undefined_variable"),
        Row("x: &a lab-${NOWHERE}\nhistory: {path: *a}", "1:1+1 unknown_key, 2:17+2 undefined_variable"),
        Row("gateway: lab-${NAME", "1:14+6 bad_substitution"),
        Row("gateway: ${1X}", "1:10+5 bad_substitution"),
        Row("gateway: ${A-b}", "1:10+6 bad_substitution"),
    ]

    @Test(arguments: structure + values + rules)
    func `each mistake has its place and kind`(row: Row) {
        #expect(errors(in: row.text).map(summary).joined(separator: ", ") == row.expected)
    }

    @Test func `all mistakes of a file are reported in order`() {
        let text = """
            log: {level: loud}
            devices:
              - name: a
                address: nowhere
              - name: a
                address: C0:FF:EE:00:00:01
                profile: [x]
            gatway: x
            """
        #expect(
            errors(in: text).map(summary) == [
                "1:14+4 invalid_value", "4:14+7 invalid_value", "5:11+1 duplicate", "7:5+7 unknown_key",
                "8:1+6 unknown_key",
            ]
        )
    }

    @Test func `an error prints like a compiler's`() throws {
        let error = try #require(errors(in: "bluetooth:\n  connect_timeout: 5 parsecs # far\n").first)
        #expect(
            error.description == """
                gattherd.yaml:2:20: error: '5 parsecs' is not a duration from 1s to 10m; write a number and its unit, for example 30s
                2 |   connect_timeout: 5 parsecs # far
                  |                    ^~~~~~~~~
                """
        )
    }

    @Test func `a message does not show a secret, and a summary shows no line of the file`() throws {
        let known = try #require(errors(in: "mqtt: {url: 'mqtt://a', password: hunter2}").first)
        #expect(known.description.hasPrefix("gattherd.yaml:1:25: error: 'password' would keep a secret"))
        #expect(!known.description.contains("hunter2"))
        let all = ConfigErrors(errors(in: "mqtt: {url: 'mqtt://a', passwd: hunter2}\nzzz: 1"))
        #expect(all.description.contains("hunter2"))
        let starts = all.summary.split(separator: "\n").map { $0.prefix(19) }
        #expect(starts == ["gattherd.yaml:1:25:", "gattherd.yaml:2:1: "])
        #expect(!all.summary.contains("hunter2"))
        let many = ConfigErrors(errors(in: (1...50).map { "x\($0): 1\n" }.joined()))
        #expect(many.summary.hasSuffix("\nand 30 more mistakes"))
    }

    @Test func `a long line is cut around the place of an error`() throws {
        let padding = String(repeating: " ", count: 500)
        for (before, after) in [(padding, padding), ("", padding), (padding, ""), ("", "")] {
            let error = try #require(errors(in: "log: {\(before)level: loud\(after)}").first)
            let lines = error.description.split(separator: "\n")
            #expect(lines.count == 3 && lines[1].count <= 166)
            let marked = zip(lines[1], lines[2]).filter { $0.1 == "^" || $0.1 == "~" }.map(\.0)
            #expect(String(marked) == "loud")
            #expect(lines[1].contains(" | …") == !before.isEmpty && lines[1].hasSuffix("…") == !after.isEmpty)
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `the mistakes of a generated file are limited`() {
        let values = String(repeating: "x,", count: 50_000)
        let many = errors(in: "bluetooth: {adapters: [\(values)x]}")
        #expect(many.count == 1001)
        #expect(many.last?.problem.description == "49001 more mistakes are left out; correct these first")
        let options = (0..<30_000).map { "o\($0): x" }.joined(separator: ",")
        let device = "devices: [{name: a, address: C0:FF:EE:00:00:01, options: {\(options)}}]"
        #expect(errors(in: device).count == 1001)
    }

    @Test func `a message lists a few profiles, and names the command that lists many`() {
        let names = (1...21).map { "profile-\($0)" }
        let few = ConfigProblem.unknownProfile("x", nearest: nil, known: Array(names.prefix(2))).description
        #expect(few == "no profile is named 'x'; choose one of profile-1, profile-2")
        let many = ConfigProblem.unknownProfile("x", nearest: nil, known: names).description
        #expect(many == "no profile is named 'x'; choose one of: gattherd profile list")
        let near = ConfigProblem.unknownProfile("profile-x", nearest: "profile-1", known: names).description
        #expect(near.hasSuffix("did you mean 'profile-1'?"))
    }

    @Test(arguments: [
        ("gatway: x", "unknown key 'gatway' in the configuration; did you mean 'gateway'?"),
        ("mqtt: {url: 'mqtt://a', retian: true}", "unknown key 'retian' in 'mqtt'; did you mean 'retain'?"),
        ("log: {colour: x}", "unknown key 'colour' in 'log'; choose one of level, format"),
        ("mqtt: {}", "'mqtt' needs the key 'url'; write for example mqtt://localhost:1883"),
        (
            "mqtt: {url: 'mqtt://a', password: x}",
            "'password' would keep a secret in this file; put it into a file that only gattherd may read, "
                + "and write password_file"
        ),
        (
            "bluetooth: {rotate: 1s}",
            "'1s' is not a duration from 1m to 1d; write a number and its unit, for example 5m"
        ),
        ("gateway: ${X}", "the environment has no variable X; set it, or write ${X:-default}"),
    ])
    func `an error says what to write instead`(text: String, problem: String) {
        #expect(errors(in: text).map(\.problem.description) == [problem])
    }

    @Test func `a column counts characters, not bytes`() {
        #expect(
            errors(in: "log: {level: ääh, format: ö}").map(summary) == ["1:14+3 invalid_value", "1:27+1 invalid_value"]
        )
    }

    @Test func `control characters of a file are replaced`() throws {
        let error = try #require(errors(in: "gateway: \"\\e[31m\"\nx: \u{1B}").first)
        #expect(!error.description.unicodeScalars.contains("\u{1B}"))
    }
}
