import CGattherdProfile
import GattherdGATT
import GattherdModel

extension ControlDescriptor {
    /// Reads one entry of a native table; `what` names it in errors.
    init(_ raw: UnsafePointer<gattherd_control>, _ what: String) throws(TableFault) {
        let least = unsafe MemoryLayout<gattherd_control>.size
        let entry = try unsafe TableReader.structure(raw, gattherd_control(), least: least, what)
        let name = try unsafe TableReader.identifier(entry.name, "the name of \(what)")
        let service = try unsafe TableReader.optionalUUID(entry.service, "the service of control '\(name)'")
        let characteristic = try unsafe TableReader.uuid(entry.uuid, "the UUID of control '\(name)'")
        self.init(
            name: name,
            kind: try unsafe ControlKind(entry, name),
            service: service,
            characteristic: characteristic,
            unit: try unsafe TableReader.optionalText(entry.unit, "the unit of control '\(name)'"),
            isAcknowledged: unsafe entry.flags & GATTHERD_WRITE_WITHOUT_RESPONSE == 0,
            throttle: try unsafe TableReader.duration(entry.throttle_milliseconds, "the throttle of control '\(name)'"),
            echo: try unsafe TableReader.optionalText(entry.echo, "the echo of control '\(name)'"),
            answer: try unsafe ResponseRule.read(entry.answer, of: characteristic, in: service, "control '\(name)'")
        )
    }
}

extension ControlKind {
    fileprivate init(_ entry: gattherd_control, _ name: String) throws(TableFault) {
        switch unsafe entry.kind {
        case GATTHERD_CONTROL_INTEGER:
            let (low, high) = unsafe (entry.integer_min, entry.integer_max)
            guard low <= high else { throw TableFault("the range of control '\(name)' is empty") }
            self = .integer(low...high)
        case GATTHERD_CONTROL_REAL:
            let (low, high) = unsafe (entry.real_min, entry.real_max)
            guard low.isFinite, high.isFinite, low <= high else {
                throw TableFault("the range of control '\(name)' is empty or not finite")
            }
            self = .real(low...high)
        case GATTHERD_CONTROL_BOOLEAN: self = .boolean
        case GATTHERD_CONTROL_CHOICE: self = .choice(try unsafe Self.labels(entry, name))
        case GATTHERD_CONTROL_TRIGGER: self = .trigger
        case let other: throw TableFault("control '\(name)' has the unknown kind \(other)")
        }
    }

    private static func labels(_ entry: gattherd_control, _ name: String) throws(TableFault) -> [String] {
        let labels = try unsafe TableReader.array(
            entry.labels,
            count: entry.label_count,
            limit: 1...256,
            "labels of control '\(name)'"
        ) { (text, what) throws(TableFault) in try unsafe TableReader.text(text, what) }
        if let twice = labels.firstDuplicate { throw TableFault("control '\(name)' has two labels '\(twice)'") }
        return labels
    }
}

extension ConnectionTaskDescriptor {
    private static let longestWrite = 512

    /// Reads one entry of a native table; `what` names it in errors.
    ///
    /// - Parameters:
    ///   - raw: The entry.
    ///   - streams: The profile's streams, for ``ResumeRule``.
    ///   - what: The entry's name in errors.
    /// - Throws: ``TableFault`` for the first error.
    init(
        _ raw: UnsafePointer<gattherd_task>,
        streams: [CharacteristicDescriptor],
        _ what: String
    ) throws(TableFault) {
        let least = unsafe MemoryLayout<gattherd_task>.size
        let entry = try unsafe TableReader.structure(raw, gattherd_task(), least: least, what)
        let service = try unsafe TableReader.optionalUUID(entry.service, "the service of \(what)")
        let characteristic = try unsafe TableReader.uuid(entry.uuid, "the UUID of \(what)")
        let action: Action
        switch unsafe entry.kind {
        case GATTHERD_TASK_LISTEN:
            guard unsafe entry.size == 0, unsafe entry.answer == nil, unsafe entry.resume == nil else {
                throw TableFault("\(what) only listens; it has neither bytes nor answer nor resume")
            }
            action = .listen
        case GATTHERD_TASK_WRITE:
            let bytes = try unsafe TableReader.bytes(entry.bytes, entry.size, most: Self.longestWrite, what)
            let answer = try unsafe ResponseRule.read(entry.answer, of: characteristic, in: service, what)
            let isAcknowledged = unsafe entry.flags & GATTHERD_WRITE_WITHOUT_RESPONSE == 0
            action = .write(WriteTemplate(bytes), isAcknowledged: isAcknowledged, answer: answer)
        case let other: throw TableFault("\(what) has the unknown kind \(other)")
        }
        self.init(
            service: service,
            characteristic: characteristic,
            action: action,
            isRequired: unsafe entry.flags & GATTHERD_TASK_REQUIRED != 0,
            resume: try unsafe ResumeRule.read(entry.resume, streams, what)
        )
    }
}

extension ResumeRule {
    /// The bytes that are left of a write for the prefix.
    private static let longestPrefix = 504

    fileprivate static func read(
        _ raw: UnsafePointer<gattherd_resume>?,
        _ streams: [CharacteristicDescriptor],
        _ task: String
    ) throws(TableFault) -> ResumeRule? {
        guard let raw = unsafe raw else { return nil }
        let what = "the resume of \(task)"
        let least = unsafe MemoryLayout<gattherd_resume>.size
        let entry = try unsafe TableReader.structure(raw, gattherd_resume(), least: least, what)
        let name = try unsafe TableReader.identifier(entry.stream, "the stream of \(what)")
        guard let stream = streams.first(where: { $0.stream == name }) else {
            throw TableFault("\(what) needs the stream '\(name)', which does not exist")
        }
        guard unsafe entry.metric < stream.metrics.count else {
            throw TableFault("\(what) needs metric \(unsafe entry.metric) of stream '\(name)', which does not exist")
        }
        guard unsafe (1...7).contains(entry.width) else {
            throw TableFault("\(what) has a number of \(unsafe entry.width) bytes; 1 to 7 are allowed")
        }
        return ResumeRule(
            stream: name,
            metric: unsafe Int(entry.metric),
            prefix: try unsafe TableReader.bytes(entry.prefix, entry.prefix_size, most: longestPrefix, what),
            width: unsafe Int(entry.width)
        )
    }
}

extension ResponseRule {
    /// Reads the answer to a write to `characteristic`; `owner` names the write in errors.
    fileprivate static func read(
        _ raw: UnsafePointer<gattherd_answer>?,
        of characteristic: BluetoothUUID,
        in service: BluetoothUUID?,
        _ owner: String
    ) throws(TableFault) -> ResponseRule? {
        guard let raw = unsafe raw else { return nil }
        let what = "the answer of \(owner)"
        let least = unsafe MemoryLayout<gattherd_answer>.size
        let entry = try unsafe TableReader.structure(raw, gattherd_answer(), least: least, what)
        let other = try unsafe TableReader.optionalUUID(entry.uuid, "the UUID of \(what)")
        let place = try unsafe TableReader.optionalUUID(entry.service, "the service of \(what)")
        let cases = try unsafe TableReader.array(
            entry.responses,
            count: entry.response_count,
            limit: 1...64,
            "responses in \(what)"
        ) { (response, what) throws(TableFault) in try unsafe Case(response, what) }
        var rule = ResponseRule(
            service: place ?? (other == nil ? service : nil),
            characteristic: other ?? characteristic,
            cases: cases
        )
        if let timeout = try unsafe TableReader.duration(entry.within_milliseconds, "the time limit of \(what)") {
            guard ProfileRules.answerTimes.contains(timeout) else {
                throw TableFault("\(what) has an invalid time limit: use 100 ms to 5 minutes")
            }
            rule.timeout = timeout
        }
        return rule
    }
}

extension ResponseRule.Case {
    fileprivate init(_ raw: UnsafePointer<gattherd_response>, _ what: String) throws(TableFault) {
        let least = unsafe MemoryLayout<gattherd_response>.size
        let entry = try unsafe TableReader.structure(raw, gattherd_response(), least: least, what)
        let pattern = try unsafe TableReader.optionalPattern(entry.pattern, "the pattern of \(what)")
        guard let pattern else { throw TableFault("the pattern of \(what) is NULL") }
        let refusal = try unsafe TableReader.optionalText(entry.refusal, "the refusal of \(what)")
        self.init(pattern, refusal.map { .refusal($0) } ?? .success)
    }
}
