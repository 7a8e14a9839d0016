import CGattherdProfile
import GattherdGATT
import GattherdModel

/// A checked table of a native profile.
@safe struct NativeTable: Sendable {
    private static let maximumTests = 1024

    /// A copy of the table.
    ///
    /// `nonisolated(unsafe)` is safe: its pointers stay valid and constant, as the image stays loaded.
    nonisolated(unsafe) let raw: gattherd_profile

    let name: String
    let title: String
    let services: [BluetoothUUID]
    let characteristics: [CharacteristicDescriptor]
    let controls: [ControlDescriptor]
    let tasks: [ConnectionTaskDescriptor]
    let advertisements: [AdvertisementDescriptor]
    /// The tests of each stream.
    let vectors: [[TestVector]]

    /// - Parameter table: The result of the entry point.
    /// - Throws: ``TableFault`` for the first error.
    init(_ table: UnsafeRawPointer?) throws(TableFault) {
        let table = try unsafe Self.versioned(table)
        name = try unsafe TableReader.text(table.name, "its name")
        guard ProfileRules.isSlug(name) else {
            throw TableFault("its name '\(name)' may have only a-z, 0-9, _ and -, at most 64 characters")
        }
        title = try unsafe TableReader.text(table.title, "its title")
        let frames = try unsafe Self.frames(table)
        services = try unsafe Self.services(table, least: frames.isEmpty ? 1 : 0)
        let streams = try unsafe Self.streams(table)
        let characteristics = streams.map(\.descriptor)
        self.characteristics = characteristics
        controls = try unsafe Self.controls(table)
        tasks = try unsafe Self.tasks(table, characteristics)
        advertisements = frames.map(\.descriptor)
        vectors = streams.map(\.vectors) + frames.map(\.vectors)
        unsafe raw = table
        try checkNames()
        try checkFunctions()
        try checkPurpose()
    }

    /// Checks the version before it reads the rest.
    private static func versioned(_ table: UnsafeRawPointer?) throws(TableFault) -> gattherd_profile {
        guard let table = unsafe table else { throw TableFault("it declines this version of gattherd") }
        let major = unsafe table.loadUnaligned(as: UInt32.self)
        guard major == GATTHERD_PROFILE_MAJOR else {
            throw TableFault("it uses contract \(major), gattherd supports contract \(GATTHERD_PROFILE_MAJOR)")
        }
        let raw = unsafe table.assumingMemoryBound(to: gattherd_profile.self)
        return try unsafe TableReader.structure(
            raw,
            gattherd_profile(),
            sizeOffset: MemoryLayout<gattherd_profile>.offset(of: \.struct_size) ?? 8,
            least: MemoryLayout<gattherd_profile>.size,
            "its table"
        )
    }

    private static func services(_ table: gattherd_profile, least: Int) throws(TableFault) -> [BluetoothUUID] {
        let count = unsafe table.service_count
        return try unsafe TableReader.array(table.services, count: count, limit: least...64, "services") {
            (text, what) throws(TableFault) in try unsafe TableReader.uuid(text, what)
        }
    }

    private static func streams(
        _ table: gattherd_profile
    ) throws(TableFault) -> [TableStream<CharacteristicDescriptor>] {
        let (list, count) = unsafe (table.characteristics, table.characteristic_count)
        return try unsafe TableReader.array(list, count: count, limit: 0...256, "characteristics") {
            (entry, what) throws(TableFault) in try unsafe TableStream(entry, what)
        }
    }

    private static func frames(
        _ table: gattherd_profile
    ) throws(TableFault) -> [TableStream<AdvertisementDescriptor>] {
        let (list, count) = unsafe (table.advertisements, table.advertisement_count)
        return try unsafe TableReader.array(list, count: count, limit: 0...64, "advertisements") {
            (entry, what) throws(TableFault) in try unsafe TableStream(entry, what)
        }
    }

    private static func controls(_ table: gattherd_profile) throws(TableFault) -> [ControlDescriptor] {
        try unsafe TableReader.array(table.controls, count: table.control_count, limit: 0...64, "controls") {
            (entry, what) throws(TableFault) in try unsafe ControlDescriptor(entry, what)
        }
    }

    private static func tasks(
        _ table: gattherd_profile,
        _ streams: [CharacteristicDescriptor]
    ) throws(TableFault) -> [ConnectionTaskDescriptor] {
        try unsafe TableReader.array(table.tasks, count: table.task_count, limit: 0...64, "tasks") {
            (entry, what) throws(TableFault) in try unsafe ConnectionTaskDescriptor(entry, streams: streams, what)
        }
    }

    private func checkNames() throws(TableFault) {
        let streams = characteristics.map(\.stream) + advertisements.map(\.stream)
        if let name = streams.firstDuplicate { throw TableFault("it has two streams '\(name)'") }
        if let name = controls.map(\.name).firstDuplicate { throw TableFault("it has two controls '\(name)'") }
        for control in controls {
            guard let echo = control.echo, !characteristics.contains(where: { $0.stream == echo }) else { continue }
            throw TableFault("control '\(control.name)' is echoed by stream '\(echo)', which does not exist")
        }
    }

    private func checkFunctions() throws(TableFault) {
        let table = unsafe raw
        guard unsafe vectors.isEmpty || table.decode != nil else {
            throw TableFault("it has no decode function")
        }
        guard unsafe controls.isEmpty || table.encode != nil else { throw TableFault("it has no encode function") }
        guard unsafe (table.session_create == nil) == (table.session_destroy == nil) else {
            throw TableFault("it has only one of session_create and session_destroy")
        }
    }

    /// Checks that the profile either connects or listens.
    private func checkPurpose() throws(TableFault) {
        let isConnecting = !services.isEmpty || !characteristics.isEmpty || !controls.isEmpty || !tasks.isEmpty
        guard advertisements.isEmpty || !isConnecting else {
            throw TableFault("it has advertisements, so it can have no services, characteristics, controls or tasks")
        }
        let tests = vectors.reduce(0) { $0 + $1.count }
        guard tests <= Self.maximumTests else {
            throw TableFault("it has \(tests) tests; at most \(Self.maximumTests) are allowed")
        }
    }
}

extension [String] {
    /// The first duplicate element.
    var firstDuplicate: String? {
        var seen: Set<String> = []
        return first { !seen.insert($0).inserted }
    }
}
