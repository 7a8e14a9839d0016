import GattherdModel
import Testing

@testable import GattherdMachines

/// The Bluetooth faults, each with a beginning and an end.
enum Fault: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case linkLost, outOfRange, objectRemoved, servicesChanged
    case connectAborts, connectHangs, connectUnanswered
    case servicesNeverResolve, servicesMissing, subscriptionRefused, subscriptionEndsAtOnce, staleObjects
    case sessionUnanswered, disconnectUnanswered
    case flapping
    case adapterOff, adapterUnplugged, adapterFull
    case inProgressWedge, controllerHangs, controllerRefuses, discoveryDeaf, scansRefused
    case daemonRestarted, daemonAway
    case otherProgramConnects, otherProgramDisconnects
    case heldAndReleased
    case reconfigured, dismissedAndEnrolled

    var testDescription: String { rawValue }

    /// The duration of the fault; zero for an instantaneous one.
    var duration: Duration {
        switch self {
        case .linkLost, .objectRemoved, .servicesChanged, .daemonRestarted, .otherProgramDisconnects, .reconfigured:
            .zero
        case .flapping: .seconds(60)
        case .daemonAway, .heldAndReleased, .dismissedAndEnrolled, .adapterOff, .adapterUnplugged: .seconds(20)
        case .inProgressWedge, .controllerHangs, .controllerRefuses, .discoveryDeaf: .zero
        case .outOfRange, .connectAborts, .connectHangs, .connectUnanswered, .servicesNeverResolve, .servicesMissing,
            .subscriptionRefused, .subscriptionEndsAtOnce, .staleObjects, .sessionUnanswered, .disconnectUnanswered,
            .adapterFull, .otherProgramConnects, .scansRefused:
            .seconds(100)
        }
    }

    /// The equivalent fault of one peripheral, if any.
    private var fault: SupervisorWorld.PeripheralFault? {
        switch self {
        case .connectAborts: .abortsConnect
        case .connectHangs: .neverConnects
        case .connectUnanswered: .connectUnanswered
        case .servicesNeverResolve: .neverResolves
        case .servicesMissing: .lacksOurServices
        case .subscriptionRefused: .refusesSubscription
        case .subscriptionEndsAtOnce: .endsSubscriptions
        case .staleObjects: .hasStaleObjects
        case .sessionUnanswered: .sessionUnanswered
        case .disconnectUnanswered: .disconnectUnanswered
        default: nil
        }
    }

    /// Begins the fault for one device, or for all if it concerns all.
    func begin(in world: inout SupervisorWorld, _ name: String) {
        if let fault {
            world.peripherals[name]?.fault = fault
            if self != .disconnectUnanswered { world.drop(name) }
            return
        }
        switch self {
        case .linkLost: world.drop(name)
        case .outOfRange: world.vanish(name)
        case .objectRemoved: world.remove(name, from: world.adapter)
        case .servicesChanged: world.send(.link(device: name, .tableChanged))
        case .flapping: flap(&world, name)
        case .adapterOff: world.setPowered(world.adapter, false)
        case .adapterUnplugged: world.unplug(world.adapter)
        case .adapterFull: fill(&world, name)
        case .inProgressWedge: wedge(&world, .busy, cure: .newBusConnection)
        case .controllerHangs: wedge(&world, .hangs, cure: .powerCycle)
        case .controllerRefuses: wedge(&world, .refuses, cure: .powerCycle)
        case .discoveryDeaf: deafen(&world)
        case .scansRefused:
            world.adapters[world.adapter]?.refusesScans = true
            world.remove(name, from: world.adapter)
        case .daemonRestarted, .daemonAway: world.killDaemon()
        case .otherProgramConnects: world.connectByOther(name)
        case .otherProgramDisconnects: world.drop(name)
        case .heldAndReleased: world.hold(name)
        case .reconfigured: world.send(.link(device: name, .reconfigured))
        case .dismissedAndEnrolled: world.dismiss(name)
        default: break
        }
    }

    func end(in world: inout SupervisorWorld, _ name: String) {
        switch self {
        case .outOfRange: world.appear(name)
        case .adapterOff: world.setPowered(world.adapter, true)
        case .adapterUnplugged: world.plug(world.adapter)
        case .scansRefused: world.adapters[world.adapter]?.refusesScans = false
        case .adapterFull: world.setOtherLinks(0, on: world.adapter)
        case .daemonRestarted, .daemonAway: world.restartDaemon()
        case .otherProgramConnects: world.drop(name)
        case .heldAndReleased: world.release(name)
        case .dismissedAndEnrolled: world.enrol(name)
        default: if fault != nil { world.peripherals[name]?.fault = nil }
        }
    }

    private func flap(_ world: inout SupervisorWorld, _ name: String) {
        for number in 0..<10 { world.after(.seconds(6) * number) { $0.drop(name) } }
    }

    private func fill(_ world: inout SupervisorWorld, _ name: String) {
        world.adapters[world.adapter]?.slots = world.names.count
        world.drop(name)
        world.setOtherLinks(1, on: world.adapter)
    }

    private func wedge(_ world: inout SupervisorWorld, _ ailment: SupervisorWorld.Ailment, cure: RecoveryLadder.Step) {
        world.adapters[world.adapter]?.ailment = ailment
        world.adapters[world.adapter]?.cure = cure
        for name in world.names { world.drop(name) }
    }

    /// Removes all peripherals, so that only discovery finds them, and makes discovery deaf.
    private func deafen(_ world: inout SupervisorWorld) {
        world.adapters[world.adapter]?.hearsNothing = true
        world.adapters[world.adapter]?.cure = .powerCycle
        for name in world.names { world.remove(name, from: world.adapter) }
    }
}
