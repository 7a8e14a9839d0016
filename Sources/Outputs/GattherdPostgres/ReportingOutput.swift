import GattherdModel
import GattherdOutputs
import GattherdSync

/// The output, with a report to the centre once a minute: a gateway without new entries is seen, too.
final class ReportingOutput: Output {
    private let output: BatchOutput
    private let sink: PostgresSink
    private let pause: Duration

    init(_ output: BatchOutput, _ sink: PostgresSink, pause: Duration = .seconds(60)) {
        (self.output, self.sink, self.pause) = (output, sink, pause)
    }

    var name: String { output.name }
    var kind: String { output.kind }
    var status: OutputStatus { output.status }

    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.report() }
            await output.run()
            group.cancelAll()
        }
    }

    func roundTrip() async { await output.roundTrip() }

    func stop(within limit: Duration) async { await output.stop(within: limit) }

    /// Reports while the centre answers; the output itself finds out when it does so again.
    private func report() async {
        while (try? await Task.sleep(for: pause, clock: .loop)) != nil {
            if output.status.state == .connected { await sink.reportIfDue(after: pause * 5 / 6) }
        }
    }
}
