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

    /// True if the reading is still the newest, and was not published in the session.
    func isMissing(_ reading: JournalReading, in session: Int) -> Bool {
        newest?.seq == reading.seq && self.session != session
    }

    /// The newest reading, unless it was published in the session.
    func missing(in session: Int) -> JournalReading? {
        self.session == session ? nil : newest?.with(samples[...])
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

    /// The newest readings of streams of which none was published in the session, in journal order.
    func missing(in session: Int) -> [JournalReading] {
        streams.values.compactMap { $0.missing(in: session) }.sorted { $0.seq < $1.seq }
    }
}

extension JournalReading {
    /// The reading with other samples.
    fileprivate func with(_ samples: ArraySlice<Sample>) -> Self {
        Self(seq: seq, stream: stream, time: time, source: source, isStored: isStored, samples: samples)
    }
}

/// The search for the gateway's retained state, which shows whether the broker keeps retained messages.
///
/// The subscription to the state is sent before `online`. A broker that keeps retained messages then sends the state of
/// the last session, which is at least the last will.
struct RetainedStateCheck: Hashable {
    /// The session in which the state was missing; `nil` once the readings are published again.
    private var missingSince: Int?
    private var foundIn: Int?

    /// True until the readings are published again to a broker that has lost its retained messages.
    var isLost: Bool { missingSince != nil }

    /// Records that the broker accepted the subscription; it sends the retained state at about the same time.
    mutating func subscribed(in session: Int) {
        if foundIn != session, missingSince == nil { missingSince = session }
    }

    /// Records that the broker sent the retained state.
    mutating func found(in session: Int) {
        foundIn = session
        // A later session finds the state that this one has published.
        if missingSince == session { missingSince = nil }
    }

    /// Records that the readings are published again.
    mutating func repaired() { missingSince = nil }
}

/// A reading that is published again to a broker that has lost its retained messages.
struct RepeatedReading {
    let reading: JournalReading
    /// The number of times that the broker has refused it.
    var refusals = 0
}
