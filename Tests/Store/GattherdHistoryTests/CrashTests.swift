import FoundationEssentials
import GattherdHistory
import GattherdLog
import GattherdModel
import GattherdSync
import Glibc
import TestKit
import Testing

/// A writer that is killed at any instant, again and again, on one file.
@Suite(.timeLimit(.minutes(2)))
struct CrashTests {
    /// The promises that the writer made before it was killed.
    private struct Witness {
        /// The last value that `append` returned for.
        var committed = -1
        /// The value that a subscriber saw with each `seq`, which may be seen again.
        var seen: [Int64: Set<Int>] = [:]

        init(_ path: String) throws {
            guard let text = try? String(contentsOf: URL(filePath: path), encoding: .utf8) else { return }
            for line in text.split(separator: "\n", omittingEmptySubsequences: true) {
                let words = line.split(separator: " ")
                guard words.last == "." else { continue }  // the line that was being written
                let numbers = words.dropLast().compactMap { Int($0) }
                if numbers.count == 1 { committed = max(committed, numbers[0]) }
                if numbers.count == 2 { seen[Int64(numbers[0]), default: []].insert(numbers[1]) }
            }
        }
    }

    @Test func `after kills each committed reading is stored once and no number is repeated`() async throws {
        let folder = try TemporaryFolder()
        let witnessPath = folder.file("witness")
        var random = SplitMix(state: 42)
        var round = 0
        // On a busy machine a writer may die before it has written anything.
        while try round < 12 || Witness(witnessPath).seen.count <= 100 {
            defer { round += 1 }
            let delay = random.next(below: 60_000)
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [path = folder.database as String, witnessPath = witnessPath as String, delay = delay as Int] in
                try await CrashingWriter(path: path, witness: witnessPath).run(killedAfter: delay)
            }
            let witness = try Witness(witnessPath)
            try check(HistoryReader(path: folder.database).allRows(), against: witness, round: round)
        }
        #expect(try await folder.shell.value("PRAGMA integrity_check") == "ok")
    }

    private func check(_ rows: [HistoryRow], against witness: Witness, round: Int) throws {
        let bySeq = rows.sorted { $0.seq < $1.seq }
        let values = bySeq.map { row in if case .integer(let number) = row.value { Int(number) } else { -1 } }
        #expect(values == Array(0..<values.count), "round \(round): a row is lost, doubled or out of order")
        #expect(values.count > witness.committed, "round \(round): a committed row is lost")
        #expect(Set(rows.map(\.seq)).count == rows.count)
        let stored = Dictionary(uniqueKeysWithValues: zip(bySeq.map(\.seq), values))
        for (seq, seen) in witness.seen where seen != [stored[seq] ?? -1] {
            Issue.record("round \(round): subscribers saw \(seen) as \(seq), history has \(stored[seq] ?? -1)")
        }
    }
}

/// Appends the whole numbers, delivers them, and records that in a file that survives a kill.
private struct CrashingWriter {
    let path: String
    let witness: String

    func run(killedAfter microseconds: Int) async throws {
        let history = try await ReadingHistory.open(path: path, consumers: .one, log: .silent)
        let output = unsafe open(witness, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        _ = NamedThread(name: "killer") {
            usleep(UInt32(microseconds))
            kill(getpid(), SIGKILL)
        }
        var next = try HistoryReader(path: path).allRows().count
        var delivered = try await history.acknowledged()
        while true {
            let size = 1 + next % 7
            try await history.append(.plain(integers: next..<(next + size)))
            next += size
            say("\(next - 1) .\n", to: output)
            for reading in try await history.readings(after: delivered, limit: 100) {
                say("\(reading.seq) \(value(of: reading)) .\n", to: output)
                delivered = reading.seq
            }
            try await history.acknowledge(through: delivered)
        }
    }

    /// The number at the end of `…,"value":17}`.
    private func value(of reading: JournalReading) -> String {
        String(reading.json.dropLast().reversed().prefix { $0 != ":" }.reversed())
    }

    private func say(_ line: String, to output: Int32) {
        _ = unsafe write(output, line, line.utf8.count)
    }
}
