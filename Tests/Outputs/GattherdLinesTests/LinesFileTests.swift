import FoundationEssentials
import GattherdConfig
import GattherdModel
import GattherdOutputs
import Glibc
import TestKit
import Testing

@testable import GattherdLines

@Suite struct LinesFileTests {
    private func sink(_ path: String, _ change: (inout LinesSettings) -> Void = { _ in }) -> LinesSink {
        var settings = LinesSettings(path: Located(path))
        change(&settings)
        return LinesSink(settings)
    }

    private func fault(_ sink: LinesSink, _ entries: [JournalEntry] = .rows(1...1)) async -> OutputFault? {
        do throws(OutputFault) {
            try await sink.write(entries)
            return nil
        } catch {
            return error
        }
    }

    @Test func `batches are appended to what the file has`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.jsonl")
        let first = sink(path)
        try await first.write(.rows(1...3))
        try await first.write(.rows(4...5))
        await first.close()
        try await sink(path).write(.rows(6...6))
        #expect(try rows(path) == Array(1...6))
    }

    @Test(arguments: [1, 7, 10, 30, 5000, 100_000, 200_000])
    func `the unfinished line of a killed run is removed`(length: Int) async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.jsonl")
        let line = String(decoding: EntryLines.text(of: .rows(4...4, bytes: 300_000)), as: UTF8.self)
        try folder.write(text(1...3) + line.prefix(length), to: "a.jsonl")
        try await sink(path).write(.rows(4...5))
        #expect(try rows(path) == Array(1...5))
    }

    @Test func `the zeros that a power cut leaves are removed`() async throws {
        let folder = try TemporaryFolder()
        try folder.write(text(1...3) + String(repeating: "\0", count: 5000), to: "a.jsonl")
        try await sink(folder.file("a.jsonl")).write(.rows(4...4))
        #expect(try rows(folder.file("a.jsonl")) == Array(1...4))
    }

    @Test(arguments: [1, 3]) func `a rotation that was interrupted loses no file`(missing: Int) async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.jsonl")
        // A kill after the files from `missing` on were moved to the next number.
        for number in 1...4 where number != missing { try folder.write("\(number)\n", to: "a.jsonl.\(number)") }
        let sink = sink(path)
        try await sink.write(.rows(1...1))
        await sink.close()
        let file = try LinesFile(LinesPath(path))
        try file.rotate(keep: 4)
        for number in 1...4 {
            let expected = number == 1 ? nil : "\(number <= missing ? number - 1 : number)\n"
            if let expected { #expect(try text(folder.file("a.jsonl.\(number)")) == expected) }
        }
        #expect(try rows(path + ".1") == [1])
    }

    @Test func `a file of another program is not changed`() async throws {
        let folder = try TemporaryFolder()
        try folder.write("root:x:0:0\nlast line without end", to: "passwd")
        let fault = try #require(await fault(sink(folder.file("passwd"))))
        #expect(fault.kind == .misconfigured && fault.detail.contains("choose another path"))
        #expect(try text(folder.file("passwd")) == "root:x:0:0\nlast line without end")
    }

    @Test(.enabled(if: SmallFileSystem.isPossible))
    func `on a full disk only whole batches remain, and nothing is missing afterwards`() async throws {
        let disk = try SmallFileSystem(kibibytes: 256)
        let path = disk.path + "/a.jsonl"
        let sink = sink(path)
        try await sink.write(.rows(1...10))
        let ballast = try disk.fill()
        let full = try #require(await fault(sink, .rows(11...500, bytes: 100)))
        #expect(full.kind == .unavailable && full.detail.contains("free some space"))
        #expect(try rows(path) == Array(1...10))
        unsafe unlink(ballast)
        try await sink.write(.rows(11...500, bytes: 100))
        #expect(try rows(path) == Array(1...500))
    }

    @Test func `a file that another program has moved away is created again`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.jsonl")
        let sink = sink(path)
        try await sink.write(.rows(1...1))
        unsafe rename(path, folder.file("moved"))
        try await sink.write(.rows(2...2))
        unsafe unlink(path)
        try await sink.write(.rows(3...3))
        #expect(try rows(folder.file("moved")) == [1] && rows(path) == [3])
    }

    @Test func `a file that reaches its size is rotated, and the oldest one is removed`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.jsonl")
        let sink = sink(path) { ($0.maxSize, $0.keep) = (1 << 20, 2) }
        for number in Int64(1)...9 { try await sink.write(.rows(number...number, bytes: 400_000)) }
        #expect(try rows(path) == [9])
        #expect(try rows(path + ".1") == [7, 8] && rows(path + ".2") == [5, 6])
        #expect(!FileManager.default.fileExists(atPath: path + ".3"))
    }

    @Test func `a symbolic link stays when its file is rotated, and the files stay beside its target`() async throws {
        let (folder, disk) = (try TemporaryFolder(), try TemporaryFolder())
        #expect(unsafe symlink(disk.file("a.jsonl"), folder.file("a.jsonl")) == 0)
        let sink = sink(folder.file("a.jsonl")) { ($0.maxSize, $0.keep) = (1 << 20, 2) }
        for number in Int64(1)...5 { try await sink.write(.rows(number...number, bytes: 400_000)) }
        #expect(try rows(disk.file("a.jsonl")) == [5])
        #expect(try rows(disk.file("a.jsonl.1")) == [3, 4] && rows(disk.file("a.jsonl.2")) == [1, 2])
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["a.jsonl"])
    }

    @Test func `a file that another program has truncated in place is filled from its start`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.jsonl")
        let sink = sink(path) { $0.maxSize = 1 << 20 }
        try await sink.write(.rows(1...1, bytes: 700_000))
        #expect(unsafe truncate(path, 0) == 0)
        try await sink.write(.rows(2...2, bytes: 700_000))
        #expect(try rows(path) == [2])
        #expect(!FileManager.default.fileExists(atPath: path + ".1"))
    }

    @Test func `a second writer of the same file is refused`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.jsonl")
        let first = sink(path)
        try await first.write(.rows(1...1))
        #expect(await fault(sink(path))?.detail.contains("locked by another program") == true)
        await first.close()
        #expect(await fault(sink(path)) == nil)
    }

    @Test func `a path that cannot be used is named with a remedy`() async throws {
        let folder = try TemporaryFolder()
        try folder.write("", to: "file")
        for (path, advice) in [
            (folder.file("missing/a.jsonl"), "mkdir -p '\(folder.path)/missing/'"), (folder.path, "gattherd.jsonl"),
            (folder.file("file/a.jsonl"), "mkdir -p"), ("/dev/null", "neither a file nor a named pipe"),
            (folder.file(String(repeating: "x", count: 300)), "choose another path"),
        ] {
            let fault = try #require(await fault(sink(path)))
            #expect(fault.kind == .misconfigured && fault.detail.contains(advice), "\(fault.detail)")
            #expect(fault.detail.contains(path))
        }
    }

    @Test(.enabled(if: SmallFileSystem.isPossible))
    func `a read-only file system is named with a remedy`() async throws {
        let disk = try SmallFileSystem(kibibytes: 64)
        try #require(disk.setReadOnly(true))
        let fault = try #require(await fault(sink(disk.path + "/a.jsonl")))
        #expect(fault.kind == .misconfigured && fault.detail.contains("ReadWritePaths=\(disk.path)/"))
    }
}

/// Returns the text of the lines of these readings.
private func text(_ numbers: ClosedRange<Int64>) -> String {
    String(decoding: EntryLines.text(of: .rows(numbers)), as: UTF8.self)
}

private func text(_ path: String) throws -> String {
    String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
}

/// Reads a file of complete lines and returns their numbers.
func rows(_ path: String) throws -> [Int64] {
    let text = try text(path)
    try #require(text.isEmpty || text.hasSuffix("\n"))
    return try text.split(separator: "\n").map { line in try seq(of: line) }
}

/// Returns the number of a complete line.
func seq(of line: some StringProtocol) throws -> Int64 {
    var number: Int64?
    try JSONReader.forEachMember(of: Array(line.utf8)[...]) { name, value in
        if name == "seq", case .integer(let seq) = value { number = seq }
    }
    return try #require(number)
}

extension [JournalEntry] {
    private static let stream = StreamDefinition(
        device: "strap",
        profile: "test",
        stream: "text",
        metrics: [MetricDescriptor(name: "text")]
    )

    /// Readings with these numbers and a text of `bytes` bytes.
    static func rows(_ numbers: ClosedRange<Int64>, bytes: Int = 10) -> Self {
        numbers.map { seq in
            let sample = Sample(metric: 0, value: .text(String(repeating: "x", count: bytes)))
            return .reading(
                JournalReading(
                    seq: seq,
                    stream: stream,
                    time: Timestamp(microseconds: seq),
                    source: .notify,
                    samples: [sample][...]
                )
            )
        }
    }
}
