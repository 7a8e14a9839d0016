import GattherdBluetooth
import GattherdSync

/// Who has been given values in this turn of the loop; all are told once when the turn is over.
final class SinkNotifier {
    private let loop: EventLoop
    private var sinks: [any NotificationSink] = []

    init(on loop: EventLoop) {
        self.loop = loop
    }

    /// Notes that `sink` has been given a value; on the loop.
    func note(_ sink: any NotificationSink) {
        guard !sinks.contains(where: { $0 === sink }) else { return }
        sinks.append(sink)
        if sinks.count == 1 { loop.schedule(after: .zero) { [self] in settle() } }
    }

    private func settle() {
        for sink in sinks { sink.settle() }
        sinks.removeAll(keepingCapacity: true)
    }
}
