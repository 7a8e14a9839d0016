// The same operations on discovered characteristics, with CoreBluetooth's names.
extension Peripheral {
    /// Reads the bytes of a value; see ``read(_:from:timeout:)-(_,CharacteristicID,_)``.
    public func readValue(for id: CharacteristicID, timeout: Duration? = nil) async throws -> [UInt8] {
        try await read(from: id, timeout: timeout)
    }

    /// Reads the bytes of a value; see ``read(_:from:timeout:)-(_,CharacteristicID,_)``.
    public func readValue(
        for characteristic: Characteristic,
        timeout: Duration? = nil
    ) async throws -> [UInt8] {
        try await read(from: characteristic.id, timeout: timeout)
    }

    /// Reads the bytes of a descriptor.
    public func readValue(for descriptor: Descriptor, timeout: Duration? = nil) async throws -> [UInt8] {
        try await read(from: descriptor, timeout: timeout)
    }

    /// Reads a value; see ``read(_:from:timeout:)-(_,CharacteristicID,_)``.
    public func read<Value: Readable>(
        _ type: Value.Type = Value.self,
        from characteristic: Characteristic,
        timeout: Duration? = nil
    ) async throws -> Value {
        try await read(type, from: characteristic.id, timeout: timeout)
    }

    /// Writes bytes; see ``write(_:to:type:timeout:)-(_,CharacteristicID,_,_)``.
    public func writeValue(
        _ octets: [UInt8],
        for characteristic: Characteristic,
        type: WriteType,
        timeout: Duration? = nil
    ) async throws {
        try await write(octets, to: characteristic.id, type: type, timeout: timeout)
    }

    /// Writes bytes; see ``write(_:to:type:timeout:)-(_,CharacteristicID,_,_)``.
    public func writeValue(
        _ octets: [UInt8],
        for id: CharacteristicID,
        type: WriteType,
        timeout: Duration? = nil
    ) async throws {
        try await write(octets, to: id, type: type, timeout: timeout)
    }

    /// Writes the bytes of a descriptor.
    public func writeValue(_ octets: [UInt8], for descriptor: Descriptor, timeout: Duration? = nil) async throws {
        try await write(octets, to: descriptor, timeout: timeout)
    }

    /// Writes a value; see ``write(_:to:type:timeout:)-(_,CharacteristicID,_,_)``.
    public func write(
        _ value: some Writable,
        to characteristic: Characteristic,
        type: WriteType = .withResponse,
        timeout: Duration? = nil
    ) async throws {
        try await write(value, to: characteristic.id, type: type, timeout: timeout)
    }

    /// Subscribes; see ``notifications(of:from:buffering:timeout:)-(_,CharacteristicID,_,_)``.
    public func notifications<Value: Readable>(
        of type: Value.Type = Value.self,
        from characteristic: Characteristic,
        buffering: BufferingPolicy? = nil,
        timeout: Duration? = nil
    ) async throws -> Notifications<Value> {
        try await notifications(of: type, from: characteristic.id, buffering: buffering, timeout: timeout)
    }

    /// Writes, and waits for the answer.
    ///
    /// See ``writeAndListen(_:to:listeningTo:as:writeType:timeout:where:)-(_,CharacteristicID,_,_,_,_,_)``.
    public func writeAndListen<Answer: Readable>(
        _ value: some Writable,
        to characteristic: Characteristic,
        listeningTo listening: Characteristic? = nil,
        as type: Answer.Type = Answer.self,
        writeType: WriteType = .withResponse,
        timeout: Duration? = nil,
        where isAnswer: @escaping @Sendable (Answer) -> Bool = { _ in true }
    ) async throws -> Answer {
        try await writeAndListen(
            value,
            to: characteristic.id,
            listeningTo: listening?.id,
            as: type,
            writeType: writeType,
            timeout: timeout,
            where: isAnswer
        )
    }

    /// Subscribes or unsubscribes; see ``setNotifyValue(_:for:timeout:)-(_,CharacteristicID,_)``.
    public func setNotifyValue(
        _ isEnabled: Bool,
        for characteristic: Characteristic,
        timeout: Duration? = nil
    ) async throws {
        try await setNotifyValue(isEnabled, for: characteristic.id, timeout: timeout)
    }
}
