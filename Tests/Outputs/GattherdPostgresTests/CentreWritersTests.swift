import GattherdModel
import GattherdOutputs
import TestKit
import Testing

@testable import GattherdPostgres

/// Several outputs of one gateway.
@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct CentreWritersTests {
    @Test func `the second of two outputs to one database is refused, also if it is the first to ask`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        let writers = CentreWriters()
        let sinks = try ["postgres", "copy"].map { name in
            try centre.sink(of: "attic", credentials, output: name, writers: writers)
        }
        let early = Task { await Self.fault(sinks[1]) }
        #expect(try await sinks[0].deliver(Entries.numbered(1...10)).isEmpty)
        for fault in [await early.value, await Self.fault(sinks[1])] {
            #expect(fault?.kind == .misconfigured)
            #expect(fault?.detail.contains("the output 'postgres' delivers to this database already, or to") == true)
            #expect(fault?.detail.hasSuffix("remove one, or make a second centre by pg_dump") == true)
        }
        #expect(try await sinks[0].deliver(Entries.numbered(1...20)).isEmpty)
    }

    @Test func `outputs of one process may deliver as two gateways`() async throws {
        let centre = try await Centre()
        let writers = CentreWriters()
        for name in ["attic", "cellar"] {
            let credentials = try await centre.fleet.add(gateway: name)
            let sink = try centre.sink(of: name, credentials, output: name, writers: writers)
            #expect(try await sink.deliver(Entries.numbered(1...10)).isEmpty)
        }
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history") == "20")
    }

    /// The reason why an output does not deliver.
    private static func fault(_ sink: PostgresSink) async -> OutputFault? {
        do throws(OutputFault) {
            _ = try await sink.cursor(in: .test)
            return nil
        } catch {
            return error
        }
    }
}
