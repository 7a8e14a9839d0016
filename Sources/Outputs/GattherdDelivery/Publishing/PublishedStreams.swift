import GattherdModel

/// A stream's topic, its rule, and the newest reading that was published there to be retained.
///
/// On the loop's thread only.
final class PublishedStream {
    let topic: String
    let rule: StreamPublishing
    private var newest: JournalReading?
    /// The samples of ``newest``, whose capacity is used again.
    private var samples: [Sample] = []
    /// The session in which ``newest`` was published; `nil` if the broker did not accept it.
    private var session: Int?

    /// True if the broker has not accepted the newest reading.
    var isUnaccepted: Bool { session == nil }

    init(topic: String, rule: StreamPublishing) {
        (self.topic, self.rule) = (topic, rule)
    }

    /// Creates the stream with another rule and the same newest reading.
    init(_ former: PublishedStream, rule: StreamPublishing) {
        (topic, self.rule) = (former.topic, rule)
        (newest, samples, session) = (former.newest, former.samples, former.session)
    }

    /// Records a published reading; its samples are copied, because those of a whole commit share their storage.
    func record(_ reading: JournalReading, in session: Int) {
        samples.removeAll(keepingCapacity: true)
        samples.append(contentsOf: reading.samples)
        newest = reading.with([])
        self.session = session
    }

    /// Records that the broker did not accept the reading.
    func refused(_ reading: JournalReading) {
        if newest?.seq == reading.seq { session = nil }
    }

    /// True if the reading is still the newest, and was not published in this session or a later one.
    func isMissing(_ reading: JournalReading, since session: Int) -> Bool {
        newest?.seq == reading.seq && (self.session ?? 0) < session
    }

    /// The newest reading, unless it was published in this session or a later one.
    func missing(since session: Int) -> JournalReading? {
        (self.session ?? 0) < session ? newest?.with(samples[...]) : nil
    }
}

/// The streams of which readings were published, found without comparing text.
///
/// On the loop's thread only.
struct PublishedStreams {
    private struct Key: Hashable {
        let device: String
        let stream: String
    }

    /// The maximum number of definitions that are remembered; a backlog creates one for each page and stream.
    private static let maximumDefinitions = 4096

    private var streams: [Key: PublishedStream] = [:]
    /// The streams by definition, which is kept so that no other one has its identity.
    private var definitions: [ObjectIdentifier: (definition: StreamDefinition, stream: PublishedStream)] = [:]

    /// The stream with this definition; `make` creates a new one.
    mutating func stream(
        _ definition: StreamDefinition,
        make: (StreamDefinition) -> PublishedStream
    ) -> PublishedStream {
        if let known = definitions[ObjectIdentifier(definition)] { return known.stream }
        let key = Key(device: definition.device, stream: definition.stream)
        let stream = streams[key] ?? make(definition)
        streams[key] = stream
        if definitions.count >= Self.maximumDefinitions { definitions = [:] }
        definitions[ObjectIdentifier(definition)] = (definition, stream)
        return stream
    }

    /// Applies new rules.
    mutating func update(_ rule: (_ device: String, _ stream: String) -> StreamPublishing) {
        definitions = [:]
        for (key, stream) in streams { streams[key] = PublishedStream(stream, rule: rule(key.device, key.stream)) }
    }

    /// Removes the streams of a removed device.
    mutating func remove(_ device: String) {
        definitions = [:]
        streams = streams.filter { $0.key.device != device }
    }

    /// The newest readings of streams of which none was published in this session or a later one, in journal order.
    ///
    /// Readings without an answer, or that the broker refused, follow all others, so that none of them delays those.
    func missing(since session: Int) -> [JournalReading] {
        let missing = streams.values.compactMap { stream in
            stream.missing(since: session).map { (isLast: stream.isUnaccepted ? 1 : 0, reading: $0) }
        }
        return missing.sorted { ($0.isLast, $0.reading.seq) < ($1.isLast, $1.reading.seq) }.map(\.reading)
    }
}

extension JournalReading {
    /// The reading with other samples.
    fileprivate func with(_ samples: ArraySlice<Sample>) -> Self {
        Self(seq: seq, stream: stream, time: time, source: source, isStored: isStored, samples: samples)
    }
}
