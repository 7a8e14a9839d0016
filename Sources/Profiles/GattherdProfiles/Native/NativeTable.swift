import CGattherdProfile
import GattherdGATT
import GattherdModel

/// A checked table of a native profile.
@safe struct NativeTable: Sendable {
    /// A copy of the table.
    ///
    /// `nonisolated(unsafe)` is safe: its pointers stay valid and constant, as the image stays loaded.
    nonisolated(unsafe) let raw: gattherd_profile

    let name: String
    let title: String
    let services: [BluetoothUUID]
    let characteristics: [CharacteristicDescriptor]
    let controls: [ControlDescriptor]

    /// - Parameter table: The result of the entry point.
    /// - Throws: ``TableFault`` for the first error.
    init(_ table: UnsafeRawPointer?) throws(TableFault) {
        let table = try unsafe Self.versioned(table)
        name = try unsafe TableReader.text(table.name, "its name")
        guard ProfileRules.isSlug(name) else {
            throw TableFault("its name '\(name)' may have only a-z, 0-9, _ and -, at most 64 characters")
        }
        title = try unsafe TableReader.text(table.title, "its title")
        services = try unsafe TableReader.array(
            table.services,
            count: table.service_count,
            limit: 1...64,
            "services"
        ) { (text, what) throws(TableFault) in try unsafe TableReader.uuid(text, what) }
        characteristics = try unsafe TableReader.array(
            table.characteristics,
            count: table.characteristic_count,
            limit: 0...256,
            "characteristics"
        ) { (entry, what) throws(TableFault) in try unsafe CharacteristicDescriptor(entry, what) }
        controls = try unsafe TableReader.array(
            table.controls,
            count: table.control_count,
            limit: 0...64,
            "controls"
        ) { (entry, what) throws(TableFault) in try unsafe ControlDescriptor(entry, what) }
        unsafe raw = table
        try checkNames()
        try checkFunctions()
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

    private func checkNames() throws(TableFault) {
        if let name = characteristics.map(\.stream).firstDuplicate { throw TableFault("it has two streams '\(name)'") }
        if let name = controls.map(\.name).firstDuplicate { throw TableFault("it has two controls '\(name)'") }
        for control in controls {
            guard let echo = control.echo, !characteristics.contains(where: { $0.stream == echo }) else { continue }
            throw TableFault("control '\(control.name)' is echoed by stream '\(echo)', which does not exist")
        }
    }

    private func checkFunctions() throws(TableFault) {
        let table = unsafe raw
        guard unsafe characteristics.isEmpty || table.decode != nil else {
            throw TableFault("it has no decode function")
        }
        guard unsafe controls.isEmpty || table.encode != nil else { throw TableFault("it has no encode function") }
        guard unsafe (table.session_create == nil) == (table.session_destroy == nil) else {
            throw TableFault("it has only one of session_create and session_destroy")
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
