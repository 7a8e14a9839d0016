import GattherdModel

/// The entries of a batch as the arrays of `gattherd.append`.
struct BatchParameters: Sendable {
    /// The times that the centre represents; its arithmetic must not overflow.
    private static let times: ClosedRange<Int64> = -9_200_000_000_000_000_000...9_200_000_000_000_000_000

    private var series: SeriesParameters
    private var samples: SampleParameters
    private var events = EventParameters()
    private var rejects = RejectParameters()
    private var corrections = CorrectionParameters()

    var hasCorrections: Bool { corrections.seqs.count > 0 }
    /// The devices with readings in the batch.
    var devices: Set<String> { series.names }

    init(_ entries: [JournalEntry]) {
        series = SeriesParameters()
        samples = SampleParameters(capacity: entries.count)
        for entry in entries {
            switch entry {
            case .reading(let reading): samples.append(reading, &series)
            case .event(let event, let seq): events.append(event, seq)
            case .reject(let reject, let seq): rejects.append(reject, seq)
            case .correction(let correction, let seq): corrections.append(correction, seq)
            }
        }
    }

    /// The parameters in the order of the function.
    consuming func parameters() -> [PostgresParameter] {
        (series.arrays + samples.arrays + events.arrays + rejects.arrays + corrections.arrays).map { .array($0) }
    }

    static func time(_ time: Timestamp) -> Int64 {
        min(max(time.microseconds, times.lowerBound), times.upperBound)
    }
}

/// The series of a batch, each once.
private struct SeriesParameters {
    private static let sources = ReadingSource.allCases

    private var devices = PostgresArray(.text)
    private var profiles = PostgresArray(.text)
    private var streams = PostgresArray(.text)
    private var metrics = PostgresArray(.text)
    private var units = PostgresArray(.text)
    private var kinds = PostgresArray(.text)
    private var sources = PostgresArray(.text)
    private var firsts = PostgresArray(.integer)
    /// The places of a stream's series by metric and source, from 1; `nil` before their first sample.
    private var places: [ObjectIdentifier: SparseArray<Int32>] = [:]
    private var count: Int32 = 0
    private(set) var names: Set<String> = []

    var arrays: [PostgresArray] { [devices, profiles, streams, metrics, units, kinds, sources, firsts] }

    init() {}

    /// Returns the places of the series of a reading's metrics, after adding those that are new.
    mutating func places(of reading: JournalReading) -> SparseArray<Int32> {
        let (stream, source) = (reading.stream, Self.sources.firstIndex(of: reading.source) ?? 0)
        var found = places[ObjectIdentifier(stream)] ?? SparseArray()
        let old = count
        for sample in reading.samples where stream.metrics.indices.contains(sample.metric) {
            let place = sample.metric * Self.sources.count + source
            guard found[place] == nil else { continue }
            count += 1
            found.set(count, at: place)
            add(stream.metrics[sample.metric], of: reading)
        }
        if count > old { places[ObjectIdentifier(stream)] = found }
        return found
    }

    static func place(_ sample: Sample, _ source: ReadingSource) -> Int {
        sample.metric * sources.count + (sources.firstIndex(of: source) ?? 0)
    }

    private mutating func add(_ metric: MetricDescriptor, of reading: JournalReading) {
        names.insert(reading.stream.device)
        devices.append(reading.stream.device)
        profiles.append(reading.stream.profile)
        streams.append(reading.stream.stream)
        metrics.append(metric.name)
        units.append(metric.unit)
        kinds.append(metric.kind.rawValue)
        sources.append(reading.source.rawValue)
        firsts.append(BatchParameters.time(reading.time))
    }
}

/// The samples of a batch.
private struct SampleParameters {
    private var seqs: PostgresArray
    private var times: PostgresArray
    private var series: PostgresArray
    private var values: PostgresArray
    private var elements: PostgresArray
    private var wholes: PostgresArray
    private var labels: PostgresArray

    var arrays: [PostgresArray] { [seqs, times, series, values, elements, wholes, labels] }

    init(capacity: Int) {
        seqs = PostgresArray(.integer, capacity: capacity)
        times = PostgresArray(.integer, capacity: capacity)
        series = PostgresArray(.shortInteger, capacity: capacity)
        values = PostgresArray(.real, capacity: capacity)
        elements = PostgresArray(.shortInteger, capacity: capacity / 3)
        wholes = PostgresArray(.integer, capacity: capacity / 3)
        labels = PostgresArray(.text, capacity: capacity / 3)
    }

    mutating func append(_ reading: JournalReading, _ known: inout SeriesParameters) {
        let (metrics, time, places) = (
            reading.stream.metrics, BatchParameters.time(reading.time), known.places(of: reading)
        )
        var counts: [Int: Int32] = [:]
        for sample in reading.samples where metrics.indices.contains(sample.metric) {
            seqs.append(reading.seq)
            times.append(time)
            series.append(short: places[SeriesParameters.place(sample, reading.source)])
            if metrics[sample.metric].isRepeated {
                elements.append(short: counts[sample.metric, default: 0])
                counts[sample.metric, default: 0] += 1
            } else {
                elements.append(short: nil)
            }
            append(sample.value)
        }
    }

    /// Numbers and booleans are reals.
    ///
    /// An integer that no real represents is appended exactly as well.
    private mutating func append(_ value: SampleValue) {
        var (real, whole, label): (Double?, Int64?, String?)
        switch value {
        case .integer(let number):
            real = Double(number)
            whole = Int64(exactly: Double(number)) == number ? nil : number
        case .real(let number): real = number.isFinite ? number : nil
        case .boolean(let flag): real = flag ? 1 : 0
        case .text(let text): label = text
        case .null: break
        }
        values.append(real)
        wholes.append(whole)
        labels.append(label)
    }
}

private struct EventParameters {
    private var seqs = PostgresArray(.integer)
    private var times = PostgresArray(.integer)
    private var devices = PostgresArray(.text)
    private var kinds = PostgresArray(.text)
    private var details = PostgresArray(.text)

    var arrays: [PostgresArray] { [seqs, times, devices, kinds, details] }

    mutating func append(_ event: LifecycleEvent, _ seq: Int64) {
        seqs.append(seq)
        times.append(BatchParameters.time(event.time))
        devices.append(event.device)
        kinds.append(event.kind)
        details.append(event.detail)
    }
}

private struct RejectParameters {
    private var seqs = PostgresArray(.integer)
    private var times = PostgresArray(.integer)
    private var devices = PostgresArray(.text)
    private var characteristics = PostgresArray(.text)
    private var octets = PostgresArray(.bytes)
    private var reasons = PostgresArray(.text)

    var arrays: [PostgresArray] { [seqs, times, devices, characteristics, octets, reasons] }

    mutating func append(_ reject: Reject, _ seq: Int64) {
        seqs.append(seq)
        times.append(BatchParameters.time(reject.time))
        devices.append(reject.device)
        characteristics.append(reject.characteristic)
        octets.append(bytes: reject.payload)
        reasons.append(reject.reason)
    }
}

private struct CorrectionParameters {
    private(set) var seqs = PostgresArray(.integer)
    private var afters = PostgresArray(.integer)
    private var throughs = PostgresArray(.integer)
    private var shifts = PostgresArray(.integer)

    var arrays: [PostgresArray] { [seqs, afters, throughs, shifts] }

    mutating func append(_ correction: ClockCorrection, _ seq: Int64) {
        seqs.append(seq)
        afters.append(correction.after)
        throughs.append(correction.through)
        shifts.append(Timestamp(microseconds: 0).advanced(by: correction.shift).microseconds)
    }
}

/// The devices of a gateway as the arrays of `gattherd.report`.
struct DeviceParameters {
    /// The maximum number of devices in a report.
    private static let most = 10_000

    let parameters: [PostgresParameter]

    /// The parameters for "no change": NULL for each array, so that the centre keeps its values.
    static let unchanged: [PostgresParameter] =
        Array(repeating: .noArray(of: .text), count: 4) + Array(repeating: .noArray(of: .integer), count: 2)

    init(_ devices: [SeenDevice]) {
        var texts = Array(repeating: PostgresArray(.text), count: 4)
        var times = Array(repeating: PostgresArray(.integer), count: 2)
        for device in devices.prefix(Self.most) {
            let record = device.record
            let words: [String?] = [record.device, record.address, record.name, record.profiles.joined(separator: ",")]
            for (index, word) in words.enumerated() { texts[index].append(word) }
            for (index, time) in [device.first, device.last].enumerated() {
                times[index].append(BatchParameters.time(time))
            }
        }
        parameters = (texts + times).map { .array($0) }
    }
}
