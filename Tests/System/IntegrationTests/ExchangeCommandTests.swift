import Foundation
import TestKit
import Testing

/// `gattherd export` and `gattherd import` on the command line.
@Suite(.timeLimit(.minutes(2))) struct ExchangeCommandTests {
    private static let all = """
        SELECT ts, device, profile, stream, metric, typeof(value), value, unit, source FROM history
        ORDER BY ts, metric, value
        """

    @Test(arguments: ["jsonl", "lp"])
    func `an export imports as the same history, once`(
        ending: String
    ) async throws {
        let old = try await HistoryFolder(seconds: 500)
        let file = old.folder.file("all." + ending)
        #expect(try await old.gattherd("export", "--output", file) == (0, "", ""))
        let new = try await HistoryFolder(seconds: 0)
        for (imported, known) in [(502, 0), (0, 502)] {
            let run = try await new.gattherd("import", file)
            #expect(run.code == 0)
            #expect(run.output.hasSuffix("/gattherd.db: \(imported) samples imported, \(known) already stored\n"))
        }
        let rows = try await SQLiteShell(new.database).rows(Self.all)
        #expect(rows.count == 502)
        #expect(try await SQLiteShell(old.database).rows(Self.all) == rows)
        #expect(try await old.gattherd("import", file).output.contains(" 0 samples imported, 502 already"))
    }

    @Test func `a wrong line is named, and the lines before it are stored once`() async throws {
        let history = try await HistoryFolder(seconds: 0)
        let line = { (second: Int) in #"{"ts":\#(second)000000,"device":"attic","metric":"t","value":21.5}"# + "\n" }
        let bad = try history.folder.write(line(1) + line(2) + "{\"ts\":3}\n" + line(4), to: "attic.jsonl")
        let run = try await history.gattherd("import", bad)
        #expect(run.code == 65)
        #expect(
            run.complaints
                == """
                attic.jsonl:3: error: there is no value; add "value"
                gattherd import: imported 2 samples before it; correct it and import the file again

                """
        )
        let good = try history.folder.write(line(1) + line(2) + line(3) + line(4), to: "attic.jsonl")
        #expect(
            try await history.gattherd("import", good).output.hasSuffix(" 2 samples imported, 2 already stored\n")
        )
        #expect(try await history.gattherd("history", "--format", "csv").output.split(separator: "\n").count == 5)
    }

    @Test func `line protocol needs a device and a precision`() async throws {
        let history = try await HistoryFolder(seconds: 0)
        let file = try history.folder.write("weather,room=attic t=21.5,h=40i 1795231205\n", to: "attic.txt")
        let run = try await history.gattherd("import", file)
        #expect(
            run.complaints.hasPrefix("attic.txt:1: error: there is no device; name one for such lines by --device\n")
        )
        let named = try await history.gattherd("import", file, "--device", "attic", "--precision", "s")
        #expect(named.output.hasSuffix(" 2 samples imported, 0 already stored\n"))
        let rows = try await history.gattherd("history", "--format", "csv").output.split(separator: "\n")
        #expect(rows[1] == "2026-11-21T03:20:05.000000Z,-1,attic,t,21.5,,read,weather")
    }

    @Test func `a byte order mark is skipped`() async throws {
        let history = try await HistoryFolder(seconds: 0)
        for (line, name) in [
            (#"{"ts":1,"device":"d","metric":"m","value":1}"#, "a.txt"), ("m,device=d value=1 2000", "b.txt"),
        ] {
            let file = try history.folder.write("\u{FEFF}\(line)\n", to: name)
            let run = try await history.gattherd("import", file)
            #expect(run.code == 0 && run.output.hasSuffix(" 1 samples imported, 0 already stored\n"))
        }
    }

    @Test func `times out of range are refused with their line`() async throws {
        let history = try await HistoryFolder(seconds: 0)
        let file = try history.folder.write(#"{"ts":\#(Int64.min),"device":"d","metric":"m","value":1}"#, to: "a.jsonl")
        let run = try await history.gattherd("import", file)
        #expect(
            run.code == 65 && run.complaints.hasPrefix("a.jsonl:1: error: the time is -9223372036854775808 µs")
        )
        _ = try await SQLiteShell(history.database).rows(
            """
            INSERT INTO stream (id, device, profile, stream) VALUES (1, 'd', 'p', 's');
            INSERT INTO quantity (id, device, stream, metric) VALUES (1, 'd', 's', 'm');
            INSERT INTO metric_series (id, stream, metric, kind, repeated, source, quantity)
            VALUES (1, 1, 'm', 'gauge', 0, 'read', 1);
            INSERT INTO sample (ts, seq, ix, series, value) VALUES (\(Int64.min), -1, 0, 1, 5);
            """
        )
        #expect(try await history.gattherd("history", "--format", "plot").code == 0)
    }

    @Test func `missing and damaged histories have their own exit codes`() async throws {
        let history = try await HistoryFolder(seconds: 20)
        let copy = history.folder.file("copy.db")
        for words in [["backup", copy], ["compact"]] {
            let errors = history.folder.file("errors")
            let arguments = ["db"] + words + ["--database", history.folder.file("nothing.db")]
            let (code, _) = try await Programs.run(Programs.path("gattherd"), arguments, errors: errors)
            #expect(code == 69)
            #expect(try String(contentsOfFile: errors, encoding: .utf8).contains("there is no history here yet"))
        }
        #expect(try await history.gattherd("db", "backup", copy).code == 0)
        #expect(try await history.gattherd("db", "backup", copy).code == 73)
    }

    @Test func `unreadable and invalid input have their own exit codes`() async throws {
        let history = try await HistoryFolder(seconds: 0)
        let missing = try await history.gattherd("import", history.folder.file("nothing"))
        #expect(missing.code == 66 && missing.complaints == "gattherd: nothing: No such file or directory\n")
        #expect(try await history.gattherd("import").code == 64)
        #expect(try await history.gattherd("import", "-", "--format", "xml").code == 64)
        #expect(try await history.gattherd("import", "-", "--precision", "h").code == 64)
        #expect(try await history.gattherd("import", "-").code == 0)
        #expect(try await history.gattherd("export", "--format", "csv").code == 64)
        #expect(try await history.gattherd("export", "--device", "nobody").code == 65)
    }
}
