import CGattherdProfile
import GattherdGATT

/// A profile as the C table that gattherd loads.
///
/// A plugin has one, and one function that gives it away:
///
///     private let exported = ExportedProfile(HeartRateProfile.self)
///
///     @c(gattherd_profile_v1)
///     public func gattherdProfile(hostMinor: UInt32) -> UnsafeRawPointer { unsafe exported.table }
@safe public struct ExportedProfile: Sendable {
    /// Never written again, never freed.
    nonisolated(unsafe) let raw: UnsafePointer<gattherd_profile>

    /// The table, as the entry returns it.
    @unsafe public var table: UnsafeRawPointer { unsafe UnsafeRawPointer(raw) }

    /// Builds the table; what it holds lives as long as the process.
    public init<Profile: NativeProfile>(_ type: Profile.Type) {
        let services = unsafe Profile.services.map { unsafe Permanent.text($0.canonical) as UnsafePointer<CChar>? }
        let characteristics = unsafe Profile.characteristics.map { unsafe $0.permanent() }
        let controls = unsafe Profile.controls.map { unsafe $0.permanent() }
        let export: AnyExport = Export<Profile>()
        unsafe raw = Permanent.value(
            gattherd_profile(
                abi_major: GATTHERD_PROFILE_MAJOR,
                abi_minor: GATTHERD_PROFILE_MINOR,
                struct_size: UInt32(MemoryLayout<gattherd_profile>.size),
                service_count: UInt32(services.count),
                characteristic_count: UInt32(characteristics.count),
                control_count: UInt32(controls.count),
                name: Permanent.text(Profile.name),
                title: Permanent.text(Profile.title),
                services: Permanent.array(services),
                characteristics: Permanent.array(characteristics),
                controls: Permanent.array(controls),
                context: Unmanaged.passRetained(export).toOpaque(),
                session_create: { unsafe TableFunctions.sessionCreate($0) },
                session_destroy: { unsafe TableFunctions.sessionDestroy($0) },
                decode: { unsafe TableFunctions.decode($0, $1, $2, $3, $4) },
                encode: { unsafe TableFunctions.encode($0, $1, $2, $3, $4, $5) }
            )
        )
    }
}
