import GattherdGateway
import GattherdPostgres

extension FleetCommands {
    /// The tables of rows without a partition that are so large that the gateways make no new partitions.
    private static let fullTables = """
        SELECT t.name FROM (VALUES ('gattherd.sample_other', 33554432), ('gattherd.minute_other', 33554432),
            ('gattherd.reception_other', 268435456), ('gattherd.duplicate_other', 268435456)) AS t(name, most)
        WHERE pg_catalog.pg_relation_size(pg_catalog.to_regclass(t.name)) > t.most
        """

    /// Warns if new rows get no partitions any more.
    func warnOfMissingPartitions() async throws(CommandFailure) {
        do throws(FleetDatabase.Failure) {
            for row in try await fleet.rows(Self.fullTables) {
                let problem = "\((row.first ?? nil) ?? "a table") is full, so no new partitions are made"
                Terminal.printError("gattherd: \(problem); see 'Retention' in docs/fleet.md")
            }
        } catch {
            throw CommandFailure(.unavailable, "gattherd: \(error)")
        }
    }

    /// Warns of corrections and of the retention that gateways have not performed.
    func warnOfOverdueWork() async throws(CommandFailure) {
        do throws(FleetDatabase.Failure) {
            for words in try await fleet.overdueWork() {
                Terminal.printError("gattherd: \(words); look for 'upkeep of the centre' in the logs of the gateways")
            }
        } catch {
            throw CommandFailure(.unavailable, "gattherd: \(error)")
        }
    }
}
