import CGattherdProfile

/// Writes down what a call says.
final class RecordingSink {
    private let metrics: [Metric]
    private(set) var samples: [Rehearsal.Sample] = []
    private(set) var reason = ""

    init(_ metrics: [Metric]) {
        self.metrics = metrics
    }

    func withSink(_ body: (UnsafePointer<gattherd_sink>) -> Int32) -> Int32 {
        var sink = unsafe gattherd_sink(
            struct_size: UInt32(MemoryLayout<gattherd_sink>.size),
            reserved: 0,
            context: Unmanaged.passUnretained(self).toOpaque(),
            integer: { unsafe RecordingSink.at($0)?.add($1, .integer($2)) },
            real: { unsafe RecordingSink.at($0)?.add($1, $2.isFinite ? .real($2) : .unknown) },
            boolean: { unsafe RecordingSink.at($0)?.add($1, .boolean($2 != 0)) },
            text: { unsafe RecordingSink.at($0)?.add($1, .text(RecordingSink.text($2, $3))) },
            null: { unsafe RecordingSink.at($0)?.add($1, .unknown) },
            fail: { unsafe RecordingSink.at($0)?.reason = RecordingSink.text($1, $2) }
        )
        return withExtendedLifetime(self) { unsafe body(&sink) }
    }

    private static func at(_ context: UnsafeMutableRawPointer?) -> RecordingSink? {
        unsafe context.map { unsafe Unmanaged.fromOpaque($0).takeUnretainedValue() }
    }

    private static func text(_ utf8: UnsafePointer<CChar>?, _ size: Int) -> String {
        unsafe String(decoding: UnsafeRawBufferPointer(start: utf8, count: size), as: UTF8.self)
    }

    fileprivate func add(_ metric: UInt32, _ value: Rehearsal.Value) {
        let name = metrics.indices.contains(Int(metric)) ? metrics[Int(metric)].name : "metric \(metric)"
        samples.append(Rehearsal.Sample(name, value))
    }
}
