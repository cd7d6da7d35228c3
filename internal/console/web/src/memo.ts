// memo draws a component again only when one of its properties is another one.
import { Component, h, type ComponentType, type VNode } from 'preact';

export function memo<P extends object>(of: (props: P) => VNode): ComponentType<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      for (const k of Object.keys(next) as (keyof P)[]) if (next[k] !== (this.props as P)[k]) return true;
      return false;
    }
    override render() { return h(of as ComponentType<P>, this.props as P); }
  } as unknown as ComponentType<P>;
}
