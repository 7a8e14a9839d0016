import GattherdConfig
import GattherdLines
import GattherdModel
import GattherdOutputs
import GattherdSync
import Glibc
import TestKit
import Testing

@Suite(.timeLimit(.minutes(1))) struct LinesPipeTests {
    /// A named pipe and the sink that writes to it.
    struct Fixture {
        let folder: TemporaryFolder
        let path: String
        let sink: LinesSink

        init() throws {
            folder = try TemporaryFolder()
            path = folder.file("pipe")
            try #require(unsafe mkfifo(path, 0o600) == 0)
            sink = LinesSink(LinesSettings(path: Located(path)))
        }

        /// True while this process, and so the sink, has the pipe open.
        var isOpen: Bool {
            var (own, pipe) = (stat(), stat())
            guard unsafe stat(path, &pipe) == 0 else { return false }
            return (Int32(0)..<4096).contains { descriptor in
                unsafe fstat(descriptor, &own) == 0 && own.st_ino == pipe.st_ino && own.st_dev == pipe.st_dev
            }
        }

        func write(_ numbers: ClosedRange<Int64>, bytes: Int = 10) async -> OutputFault? {
            await write(entries: .rows(numbers, bytes: bytes))
        }

        func write(entries: [JournalEntry]) async -> OutputFault? {
            do throws(OutputFault) {
                try await sink.write(entries)
                return nil
            } catch {
                return error
            }
        }
    }

    /// The reading end of a pipe.
    final class Reader: Sendable {
        private let descriptor: Int32

        init(_ path: String) throws {
            descriptor = unsafe open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            try #require(descriptor >= 0)
        }

        deinit {
            close(descriptor)
        }

        /// Reads the current content of the pipe, at most `count` bytes.
        func read(_ count: Int = 1 << 20) -> String {
            var bytes = [UInt8](repeating: 0, count: count)
            let length = unsafe Glibc.read(descriptor, &bytes, count)
            return String(decoding: bytes.prefix(max(0, length)), as: UTF8.self)
        }

        /// The number of bytes in the pipe.
        var waitingBytes: Int32 {
            var count: Int32 = 0
            return unsafe ioctl(descriptor, UInt(FIONREAD), &count) == 0 ? count : 0
        }

        /// Reads until `lines` line breaks have arrived.
        func read(lines: Int) async throws -> [Substring] {
            var text = ""
            while text.count(where: { $0 == "\n" }) < lines {
                let more = read()
                if more.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
                text += more
            }
            #expect(text.hasSuffix("\n"))
            return text.split(separator: "\n")
        }
    }

    @Test func `a pipe without a reader is unavailable`() async throws {
        let fixture = try Fixture()
        let fault = try #require(await fixture.write(1...1))
        #expect(fault.kind == .unavailable && fault.detail.contains("start its reader"))
    }

    @Test func `entries count as written when the reader has read them`() async throws {
        let fixture = try Fixture()
        let reader = try Reader(fixture.path)
        let isWritten = LatestValue(false)
        async let fault = {
            let fault = await fixture.write(1...3)
            isWritten.set(true)
            return fault
        }()
        var first = ""
        while first.isEmpty { first = reader.read(20) }
        #expect(!isWritten.state)
        let rest = try await reader.read(lines: 3)
        #expect(await fault == nil)
        #expect(try (first + rest.joined(separator: "\n")).split(separator: "\n").map { try seq(of: $0) } == [1, 2, 3])
    }

    @Test func `a batch larger than the pipe arrives whole`() async throws {
        let fixture = try Fixture()
        let reader = try Reader(fixture.path)
        async let fault = fixture.write(1...2000, bytes: 200)
        let lines = try await reader.read(lines: 2000)
        #expect(await fault == nil)
        #expect(try lines.map { try seq(of: $0) } == Array(1...2000))
    }

    @Test func `a reader that leaves gets nothing acknowledged, and the next one gets complete lines`() async throws {
        let fixture = try Fixture()
        var reader: Reader? = try Reader(fixture.path)
        async let fault = fixture.write(1...2000, bytes: 200)
        var start = ""
        while start.count < 1000 { start += reader?.read(1001 - start.count) ?? "" }
        reader = nil
        #expect(await fault?.kind == .unavailable)
        let next = try Reader(fixture.path)
        async let second = fixture.write(1...2000, bytes: 200)
        let lines = try await next.read(lines: 2000)
        #expect(await second == nil)
        #expect(try lines.map { try seq(of: $0) } == Array(1...2000))
    }

    @Test func `a line that a slow reader has in part is completed before the batch is repeated`() async throws {
        let fixture = try Fixture()
        let reader = try Reader(fixture.path)
        let call = Task { await fixture.write(1...2000, bytes: 200) }
        var text = ""
        while text.isEmpty { text = reader.read(10) }
        call.cancel()
        #expect(await call.value?.detail.contains("too slow") == true)
        async let second = fixture.write(1...2000, bytes: 200)
        var lines: [Substring] = []
        while await Self.isMissing(2000, in: lines) {
            text += reader.read()
            lines = text.split(separator: "\n")
        }
        #expect(await second == nil)
        let numbers = try lines.map { try seq(of: $0) }
        #expect(numbers.suffix(2000).elementsEqual(1...2000))
        #expect(numbers.dropLast(2000).elementsEqual(1...Int64(numbers.count - 2000)))
    }

    @Test func `a reader that replaces a slow one between two attempts gets complete lines`() async throws {
        let fixture = try Fixture()
        var reader: Reader? = try Reader(fixture.path)
        let call = Task { await fixture.write(1...2000, bytes: 200) }
        while (reader?.read(10) ?? "").isEmpty { await Task.yield() }
        call.cancel()
        #expect(await call.value?.detail.contains("too slow") == true)
        reader = nil
        try await eventually { !fixture.isOpen }
        let next = try Reader(fixture.path)
        async let second = fixture.write(1...2000, bytes: 200)
        let lines = try await next.read(lines: 2000)
        #expect(await second == nil)
        #expect(try lines.map { try seq(of: $0) } == Array(1...2000))
    }

    @Test func `a full pipe has whole lines only, so that a kill divides none`() async throws {
        let fixture = try Fixture()
        let reader = try Reader(fixture.path)
        let call = Task { await fixture.write(1...2000, bytes: 200) }
        while reader.waitingBytes < 50_000 { await Task.yield() }
        call.cancel()
        #expect(await call.value?.kind == .unavailable)
        #expect(reader.read().hasSuffix("}\n"))
    }

    @Test func `lines after one of more than 4 KiB are in the pipe as whole lines only`() async throws {
        let fixture = try Fixture()
        let reader = try Reader(fixture.path)
        let entries = [JournalEntry].rows(1...1, bytes: 5000) + [JournalEntry].rows(2...2000, bytes: 200)
        let call = Task { await fixture.write(entries: entries) }
        while reader.waitingBytes < 50_000 { await Task.yield() }
        call.cancel()
        #expect(await call.value?.kind == .unavailable)
        #expect(reader.read().hasSuffix("}\n"))
    }

    /// True until the last line with this number has arrived.
    private static func isMissing(_ number: Int64, in lines: [Substring]) async -> Bool {
        await Task.yield()
        guard let last = lines.last, last.hasSuffix("}") else { return true }
        return (try? seq(of: last)) != number
    }

    @Test func `a pipe that is replaced by a file is closed`() async throws {
        let fixture = try Fixture()
        let reader = try Reader(fixture.path)
        async let fault = fixture.write(1...1)
        _ = try await reader.read(lines: 1)
        #expect(await fault == nil)
        unsafe unlink(fixture.path)
        #expect(await fixture.write(2...2) == nil)
        #expect(try rows(fixture.path) == [2])
    }
}
