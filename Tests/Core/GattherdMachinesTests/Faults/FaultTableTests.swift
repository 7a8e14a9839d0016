import FoundationEssentials
import GattherdModel
import TestKit
import Testing

@testable import GattherdMachines

/// The table of `docs/faults.md`; `make faults` writes it.
@Suite struct FaultTableTests {
    @Test func `64 devices hit at once recover near the sequential time`() throws {
        for fault in GroupFault.all {
            let (time, world) = try fault.recovery(seed: 1)
            #expect(try #require(time, "\(fault.words)") <= fault.limit, "\(fault.words)")
            #expect(world.problems.isEmpty, "\(fault.words)\n\(world.story)")
        }
    }

    @Test func `the faults page matches the behaviour of the machines`() throws {
        let file = Checkout.root.appending(path: "docs/faults.md")
        let readme = try String(contentsOf: file, encoding: .utf8)
        let (begin, end) = ("<!-- faults: written by `make faults` -->\n", "<!-- end of faults -->")
        let start = try #require(readme.firstRange(of: begin))
        let stop = try #require(readme.firstRange(of: end))
        let table = try Self.table()
        guard ProcessInfo.processInfo.environment["GATTHERD_WRITE_FAULTS"] == nil else {
            let new = readme[..<start.upperBound] + table + readme[stop.lowerBound...]
            return try String(new).write(to: file, atomically: true, encoding: .utf8)
        }
        #expect(String(readme[start.upperBound..<stop.lowerBound]) == table, "run `make faults`")
    }

    private static func table() throws -> String {
        var lines = ["| fault | what gattherd does | ready again after |", "| --- | --- | --- |"]
        for fault in Fault.allCases {
            let times = try (1...5 as ClosedRange<UInt64>).map { try recovery(from: fault, seed: $0) }
            lines.append("| \(fault.words) | \(fault.remedy) | \(span(times)) |")
        }
        for fault in GroupFault.all {
            let times = try [1, 2].compactMap { try fault.recovery(seed: $0).time }
            lines.append("| \(fault.words) | \(fault.remedy) | \(span(times)) |")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Returns the recovery time of a device that was ready when the fault began.
    private static func recovery(from fault: Fault, seed: UInt64) throws -> Duration {
        var world = try SupervisorWorld(devices: 4, seed: seed)
        _ = world.bring("d1", to: .ready)
        world.run(for: .seconds(60))
        fault.begin(in: &world, "d1")
        world.run(for: fault.duration)
        fault.end(in: &world, "d1")
        let time = world.run(for: .seconds(1000), until: \.isIdle)
        return try #require(time)
    }

    /// Formats the shortest and the longest time, in seconds.
    private static func span(_ times: [Duration]) -> String {
        let tenths = times.map { Int(($0 / .milliseconds(100)).rounded(.up)) }.sorted()
        guard let first = tenths.first, let last = tenths.last else { return "never" }
        func seconds(_ tenths: Int) -> String {
            tenths < 100 ? "\(tenths / 10).\(tenths % 10)" : "\((tenths + 5) / 10)"
        }
        return seconds(first) == seconds(last) ? "\(seconds(first)) s" : "\(seconds(first)) to \(seconds(last)) s"
    }
}
