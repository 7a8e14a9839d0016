import CGattherdProfile
import GattherdGATT

/// The C table of a profile, for gattherd to load.
///
/// A plugin stores one in a global constant and returns its table from the entry point:
///
///     private let exported = ExportedProfile(HeartRateProfile.self)
///
///     @c(gattherd_profile_v1)
///     public func gattherdProfile(hostMinor: UInt32) -> UnsafeRawPointer { unsafe exported.table }
@safe public final class ExportedProfile: Sendable {
    // `nonisolated(unsafe)` is safe: written once, in the initializer, and freed in `deinit`.
    nonisolated(unsafe) let raw: UnsafePointer<gattherd_profile>
    nonisolated(unsafe) private let memory: TableMemory
    nonisolated(unsafe) private let export: AnyEncoder

    /// The table for the entry point to return; valid for the lifetime of this object.
    @unsafe public var table: UnsafeRawPointer { unsafe UnsafeRawPointer(raw) }

    /// Builds the table.
    public init<Profile: NativeProfile>(_ type: Profile.Type) {
        var memory = TableMemory()
        let services = unsafe Profile.services.map { unsafe memory.text($0.canonical) }
        let characteristics = unsafe Profile.characteristics.map { unsafe $0.table(in: &memory) }
        let controls = unsafe Profile.controls.map { unsafe $0.table(in: &memory) }
        let tasks = unsafe Profile.tasks.map { unsafe $0.table(in: &memory) }
        let advertisements = unsafe Profile.advertisements.map { unsafe $0.table(in: &memory) }
        let export: AnyEncoder = ProfileEncoder<Profile>()
        let table = unsafe gattherd_profile(
            abi_major: GATTHERD_PROFILE_MAJOR,
            abi_minor: GATTHERD_PROFILE_MINOR,
            struct_size: UInt32(MemoryLayout<gattherd_profile>.size),
            flags: Profile.isOptIn ? GATTHERD_OPT_IN : 0,
            service_count: UInt32(services.count),
            characteristic_count: UInt32(characteristics.count),
            control_count: UInt32(controls.count),
            task_count: UInt32(tasks.count),
            advertisement_count: UInt32(advertisements.count),
            reserved: 0,
            name: memory.text(Profile.name),
            title: memory.text(Profile.title),
            services: memory.array(services),
            characteristics: memory.array(characteristics),
            controls: memory.array(controls),
            tasks: memory.array(tasks),
            advertisements: memory.array(advertisements),
            context: Unmanaged.passUnretained(export).toOpaque(),
            session_create: { unsafe TableFunctions.sessionCreate($0, $1) },
            session_destroy: { unsafe TableFunctions.sessionDestroy($0) },
            decode: { unsafe TableFunctions.decode($0, $1, $2, $3, $4) },
            encode: { unsafe TableFunctions.encode($0, $1, $2, $3, $4, $5) }
        )
        unsafe raw = memory.value(table)
        unsafe self.memory = memory
        unsafe self.export = export
    }

    deinit {
        unsafe memory.free()
    }
}

/// The memory of one C table: trivial values that are freed together.
@safe struct TableMemory {
    private var blocks: [UnsafeMutableRawPointer] = unsafe []

    mutating func text(_ text: String) -> UnsafePointer<CChar>? {
        unsafe array(Array(text.utf8CString))
    }

    mutating func text(_ text: String?) -> UnsafePointer<CChar>? {
        guard let text else { return nil }
        return unsafe array(Array(text.utf8CString))
    }

    mutating func value<Value: BitwiseCopyable>(_ value: Value) -> UnsafePointer<Value> {
        unsafe array([value])
    }

    mutating func array<Value: BitwiseCopyable>(_ values: [Value]) -> UnsafePointer<Value> {
        let memory = UnsafeMutablePointer<Value>.allocate(capacity: max(1, values.count))
        for (index, value) in values.enumerated() { unsafe (memory + index).initialize(to: value) }
        unsafe blocks.append(UnsafeMutableRawPointer(memory))
        return unsafe UnsafePointer(memory)
    }

    /// Frees all memory; pointers into it become invalid.
    func free() {
        unsafe blocks.forEach { unsafe $0.deallocate() }
    }
}

extension Duration {
    /// Whole milliseconds, at least 0.
    var milliseconds: UInt64 { UInt64(exactly: (self / .milliseconds(1)).rounded()) ?? 0 }
}
