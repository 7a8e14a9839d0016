import Foundation
import TestKit
import Testing

/// `gattherd history` on the command line.
@Suite(.timeLimit(.minutes(2))) struct HistoryCommandTests {
    @Test func `samples are printed as a table, CSV and JSON lines`()
        async throws
    {
        let history = try await HistoryFolder()
        let part = ["--since", "2026-11-21T03:20:10Z", "--until", "2026-11-21T04:20:11+01:00"]
        func lines(_ format: String) async throws -> [Substring] {
            try await history.gattherd("history", part[0], part[1], part[2], part[3], "--format", format).output
                .split(separator: "\n")
        }
        let csv = try await lines("csv")
        #expect(csv == ["time,seq,device,metric,value,unit,source,stream", csv.last])
        #expect(csv.last == "2026-11-21T03:20:10.000000Z,6,strap,heart_rate,5,bpm,notify,heart_rate")
        let object = #"{"time":"2026-11-21T03:20:10.000000Z","seq":6,"device":"strap","metric":"heart_rate","#
        #expect(
            try await lines("json") == [object + #""value":5,"unit":"bpm","source":"notify","stream":"heart_rate"}"#]
        )
        let table = try await lines("table")
        #expect(table.count == 2 && table[0].hasPrefix("TIME  ") && table[1].contains("  strap  "))
        #expect(table.allSatisfy { !$0.hasSuffix(" ") })
    }

    @Test func `a device is selected by its address in any notation, unless a device has that name`() async throws {
        let history = try await HistoryFolder(seconds: 1)
        for address in ["C0:FF:EE:00:00:01", "c0-ff-ee-00-00-01", "c0ffee000001"] {
            let found = try await history.gattherd("history", "--device", address, "--format", "csv")
            #expect(found.output.contains(",strap,heart_rate,0,"), "\(found.complaints)")
        }
        let unknown = try await history.gattherd("history", "--device", "C0:FF:EE:00:00:02")
        #expect(unknown.code == 65 && unknown.complaints.contains("no device 'C0:FF:EE:00:00:02'"))
        let line = #"{"ts":0,"device":"c0ffee000001","stream":"battery","metric":"level","value":7}"#
        let file = try history.folder.write(line, to: "in.jsonl")
        #expect(try await history.gattherd("import", file).code == 0)
        let named = try await history.gattherd("history", "--device", "c0ffee000001", "--format", "csv")
        #expect(named.output.contains(",c0ffee000001,level,7,") && !named.output.contains(",strap,"))
    }

    @Test func `spans have exact numbers within the query`() async throws {
        let history = try await HistoryFolder()
        let spans = try await history.gattherd("history", "--metric", "heart_rate", "--every", "1m", "--format", "csv")
        let lines = spans.output.split(separator: "\n")
        #expect(lines.count == 1 + 61)
        #expect(lines[1] == "2026-11-21T03:20:00.000000Z,strap,heart_rate,55,0,27.0,54,bpm,heart_rate")
        #expect(lines[2] == "2026-11-21T03:21:00.000000Z,strap,heart_rate,60,0,29.5,59,bpm,heart_rate")
        #expect(lines[61] == "2026-11-21T04:20:00.000000Z,strap,heart_rate,5,55,57.0,59,bpm,heart_rate")
    }

    @Test func `streams with one metric name are printed apart, and one can be selected`() async throws {
        let history = try await HistoryFolder(seconds: 1)
        let lines = [("battery", 98), ("vendor", 40)].map { stream, level in
            #"{"ts":0,"device":"strap","stream":"\#(stream)","metric":"level","value":\#(level)}"#
        }
        let file = try history.folder.write(lines.joined(separator: "\n"), to: "in.jsonl")
        #expect(try await history.gattherd("import", file).code == 0)
        let metric = ["history", "--metric", "level", "--format"]
        let spans = try await history.gattherd(metric + ["csv", "--every", "1h"]).output.split(separator: "\n")
            .dropFirst()
        let start = "1970-01-01T00:00:00.000000Z,strap,level,1,"
        #expect(spans == ["\(start)98,98.0,98,,battery", "\(start)40,40.0,40,,vendor"])
        let plot = try await history.gattherd(metric + ["plot"]).output
        #expect(plot.contains("strap battery/level ") && plot.contains("strap vendor/level "))
        let selected = try await history.gattherd(metric + ["json", "--stream", "vendor"]).output
        #expect(selected.hasSuffix("\"stream\":\"vendor\"}\n") && selected.count { $0 == "\n" } == 1)
        let unknown = try await history.gattherd(metric + ["json", "--stream", "vender"])
        #expect(unknown.code == 65 && unknown.complaints.contains("no stream 'vender'; did you mean 'vendor'?"))
    }

    @Test func `a plot covers the samples or the requested time`() async throws {
        let history = try await HistoryFolder()
        let found = try await history.gattherd("history", "--metric", "heart_rate", "--format", "plot")
        #expect(found.code == 0)
        #expect(found.output.contains("strap heart_rate, bpm "))
        #expect(found.output.contains("n 3600  min 0  mean 29.5  max 59\n"))
        #expect(found.output.contains("03:30") && found.output.contains("04:00"))
        let asked = try await history.gattherd(
            "history",
            "--since",
            "2026-11-21",
            "--until",
            "2026-11-22",
            "--format",
            "plot",
            "--every",
            "1h"
        )
        #expect(asked.output.contains("00:00") && asked.output.contains("12:00"))
    }

    @Test func `control characters are replaced in tables and kept in JSON`() async throws {
        let history = try await HistoryFolder(seconds: 0)
        let name = "A\u{1B}]0;mine\u{7}\r\nroot\u{9B}2J\u{202E}"
        let line: [String: Any] = [
            "time": "2026-11-21T03:20:05Z", "device": "strap", "metric": "load", "value": 1, "unit": name,
        ]
        let text = line.merging(["metric": "manufacturer_name", "value": name]) { $1 }
        let file = history.folder.file("in.jsonl")
        let lines = try [line, text].map { try JSONSerialization.data(withJSONObject: $0) }
        try Data(lines.joined(separator: Data("\n".utf8))).write(to: URL(filePath: file))
        #expect(try await history.gattherd("import", file).code == 0)
        for format in ["table", "plot"] {
            let output = try await history.gattherd("history", "--format", format).output
            #expect(output.contains("A\u{FFFD}]0;mine\u{FFFD}\u{FFFD}\u{FFFD}root\u{FFFD}2J\u{FFFD}"))
            #expect(output.unicodeScalars.allSatisfy { $0 == "\n" || $0.properties.generalCategory != .control })
        }
        #expect(try await history.gattherd("history", "--format", "csv").output.contains(name))
    }

    @Test func `a file appears when it is complete, and its extension sets the format`() async throws {
        let history = try await HistoryFolder()
        for (name, start) in [
            ("c.csv", "time,seq,"), ("c.jsonl", "{\"time\":"), ("c.txt", "TIME"),
        ] {
            let path = history.folder.file(name)
            #expect(try await history.gattherd("history", "--output", path) == (0, "", ""))
            #expect(try String(contentsOfFile: path, encoding: .utf8).hasPrefix(start))
        }
        let nowhere = try await history.gattherd("history", "--output", history.folder.file("no/c.csv"))
        #expect(nowhere.code == 73)
        #expect(nowhere.complaints.hasPrefix("gattherd: no/c.csv: No such file or directory"))
        let full = try await history.gattherd("history", "--output", "/dev/full")
        #expect(full.complaints == "gattherd: /dev/full: No space left on device; it is not complete\n")
        let names = try FileManager.default.contentsOfDirectory(atPath: history.folder.path)
        #expect(names.filter { $0.hasSuffix(".part") }.isEmpty)
    }

    @Test func `errors of the command history say what to write instead`() async throws {
        let history = try await HistoryFolder()
        func refusal(_ words: String...) async throws -> String {
            let run =
                switch words.count {
                case 2: try await history.gattherd("history", words[0], words[1])
                default: try await history.gattherd("history", words[0], words[1], words[2], words[3])
                }
            #expect(run.output.isEmpty)
            return "\(run.code) " + run.complaints.prefix { $0 != "\n" }
        }
        #expect(
            try await refusal("--since", "soon").hasPrefix("64 gattherd history: 'soon' is not a time; write 1h or")
        )
        #expect(
            try await refusal("--every", "0s").hasPrefix("64 gattherd history: '0s' is not a length of time; write")
        )
        #expect(
            try await refusal("--format", "xml")
                == "64 gattherd history: 'xml' is not a format; write table, csv, json or plot"
        )
        #expect(try await refusal("--since", "1h", "--until", "2h").hasSuffix("exchange them or choose others"))
        #expect(
            try await refusal("--device", "strapp", "--format", "json")
                == "65 gattherd: gattherd.db: there is no device 'strapp'; did you mean 'strap'? history has: strap"
        )
        #expect(
            try await refusal("--metric", "temperature", "--format", "plot")
                == "65 gattherd: gattherd.db: there is no metric 'temperature'; history has: heart_rate, rr_interval"
        )
        #expect(
            try await refusal("--since", "2027-01-01", "--format", "plot")
                == "65 gattherd history: there are no numbers to plot; choose another time, device or metric"
        )
    }

    @Test func `an empty result is explained and not an error`() async throws {
        let history = try await HistoryFolder()
        let times = "history begins at 2026-11-21T03:20:05.000000Z and ends at 2026-11-21T04:20:04.000000Z\n"
        let nothing = (0, "", "gattherd: no samples were found; \(times)") as (Int32, String, String)
        #expect(try await history.gattherd("history", "--since", "2027-01-01", "--format", "json") == nothing)
        #expect(try await history.gattherd("export", "--since", "2027-01-01") == nothing)
        let rejects = try await history.gattherd("rejects", "--format", "json")
        #expect(rejects == (0, "", "gattherd: no rejects were found; \(times)"))
        let empty = try await HistoryFolder(seconds: 0)
        let none = try await empty.gattherd("history", "--every", "1h", "--format", "json")
        #expect(none == (0, "", "gattherd: no samples were found; nothing has been stored yet\n"))
        #expect(try await empty.gattherd("history", "--device", "strap").code == 65)
    }
}
